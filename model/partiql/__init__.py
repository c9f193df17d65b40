"""PartiQL for DynamoDB: parses statements into the trees and plans of the other operations."""
