"""Full-domain generalization: searches of the lattice, top-down specialization, federation, exploring."""

from sqlanon.support.methods import Method

_FULL_DOMAIN = "full_domain:FullDomainGeneralization"
METHOD = Method(
    __name__,
    place=2,
    algorithms={
        "top-down": "policy:TopDown",
        "incognito": "policy:Incognito",
        "samarati": "policy:Samarati",
        "bottom-up": "policy:BottomUp",
        "optimal": "policy:Optimal",
        "datafly": "policy:Datafly",
    },
    searches={
        "top-down": "top_down:TopDownSpecialization",
        "incognito": _FULL_DOMAIN,
        "samarati": _FULL_DOMAIN,
        "bottom-up": _FULL_DOMAIN,
        "optimal": _FULL_DOMAIN,
        "datafly": _FULL_DOMAIN,
    },
    search_picture="explore.picture:draw_search",
    commands={
        "explore.commands": ("lattice", "explore", "qualities"),
        "federation.command": ("federate",),
    },
)
