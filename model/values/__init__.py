"""Attribute values and items: types, numbers, sizes, document paths, stored form."""
