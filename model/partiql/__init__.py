"""PartiQL for DynamoDB: parses statements into the trees and plans of the other operations.

The parser follows the grammar of DynamoDB's own parser. Each file (``expression_parser``,
``operand_parser``, ``select_parser``, ``write_parser`` and others) adds a part to the one before;
``syntax.py`` has the trees. ``binding.py`` turns them into the trees of ``model/expressions``,
which the same code binds, evaluates and prices as expressions. ``read_plan`` makes a Query for
each partition key that WHERE selects, else a Scan; conditions that a range cannot express become a
filter. ``write_plan`` makes the Put, Update or Delete with its condition. A NextToken holds the
range and the last key, sealed with a digest of statement and parameters.
"""
