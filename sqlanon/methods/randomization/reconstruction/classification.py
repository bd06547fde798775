"""Accuracies of classifiers that were trained on a release with noise."""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.results.codec import JsonObject, optional


@dataclass(frozen=True)
class Accuracy:
    """The shares of rows for testing whose class naive Bayes and a decision tree predict rightly; the tree's leaves."""

    naive_bayes: float
    tree: float
    leaves: int


@dataclass(frozen=True)
class Classification(JsonObject):
    """The accuracies of classifiers for a target, by the rows that they were trained on.

    features: the columns that it is predicted from; omitted: those that have too many texts.
    trained, tested: rows; tested_on: `source`, or `release`, whose rows have noise.
    baseline: the accuracy of the most frequent class alone. noise_free: None where the source can't be read, as
        `unread` says.
    """

    release: str
    target: str
    features: tuple[str, ...]
    omitted: tuple[str, ...]
    trained: int
    tested: int
    tested_on: str
    baseline: float
    noise_free: Accuracy | None
    as_is: Accuracy
    reconstructed: Accuracy
    unread: str | None = optional()
