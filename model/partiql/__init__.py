"""PartiQL for DynamoDB: parses statements into the trees and plans of the other operations.

The parser follows the grammar of DynamoDB's own parser. Its class is built up in several files
(``expression_parser``, ``operand_parser``, ``select_parser``, ``write_parser`` and others), and
``syntax.py`` has the trees. ``binding.py`` turns them into the trees of ``model/expressions``, so
statements and expressions share the code that binds, evaluates and prices them. ``read_plan`` makes
a Query for each partition key that WHERE selects, else a Scan. Conditions that a range cannot
express become a filter. ``write_plan`` makes the Put, Update or Delete with its condition. A
NextToken holds the range and the last key, sealed with a digest of statement and parameters.
"""
