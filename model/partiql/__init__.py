"""PartiQL for DynamoDB: from a statement's text to the trees and plans of the other operations."""
