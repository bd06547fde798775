"""TODO sqlanon/methods/generalization/explore"""
