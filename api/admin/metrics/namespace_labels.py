"""The labels of namespaces in metrics: the region, and the access key if keys are separate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dynactor.storage.namespaces import Namespace


def namespace_labels(
    namespaces: Iterable[Namespace | None],
) -> Mapping[Namespace | None, Mapping[str, str]]:
    """The labels of each namespace, all with the same names; None has empty labels.

    There are no labels if None is the only one.
    """
    listed = list(namespaces)
    names: tuple[str, ...] = ()
    if any(listed):
        names = ("region",)
    if any(each is not None and each.access_key_id for each in listed):
        names = ("region", "access_key_id")
    return {
        each: {name: "" if each is None else getattr(each, name) for name in names}
        for each in listed
    }
