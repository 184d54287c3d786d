"""The expression language: text to a checked tree, to a plan in Python, to values.

`program.compile_expression` is the door; `environment` says what an expression may name, `errors` what can go wrong,
`values` what comes out. Pure: it reads no file, opens no socket, and knows no word of the gateway.
"""
