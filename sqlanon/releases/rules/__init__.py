"""The recoding function of a release as data: rules over the whole domain, for rows that it never saw."""
