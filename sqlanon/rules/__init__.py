"""The recoding function of a release as data: rules over the whole domain, that recode rows the release has never seen."""
