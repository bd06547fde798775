"""m-invariance: classes that show a person's set of sensitive values again, release by release."""

from sqlanon.support.methods import Method

METHOD = Method(
    __name__,
    place=9,
    algorithms={"buckets": "policy:Buckets"},
    searches={"buckets": "search:BucketSearch"},
    rules="policy:problems",
)
