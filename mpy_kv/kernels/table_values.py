"""What is in the table of tables.py: numbers of 16 bits, little-endian, in base 64.

Transient (mpy_kv/transient.py), as a module keeps its constants as long as it is there. Made by
tools/kernel_tables.py, which defines it.
"""

# values: python tools/kernel_tables.py --write
TABLES = (
    b"ABD1D+oP3w/UD8kPvg+zD6gPnQ+TD4gPfQ9yD2gPXQ9SD0gPPQ8zDygPHg8TDwkP/g70DuoO3w7VDssOwA62DqwOog6YDo4O"
    b"hA56DnAOZg5cDlIOSA4+DjQOKg4gDhcODQ4DDvkN8A3mDdwN0w3JDcANtg2tDaMNmg2QDYcNfg10DWsNYg1YDU8NRg09DTQN"
    b"Kw0hDRgNDw0GDf0M9AzrDOIM2QzQDMgMvwy2DK0MpAycDJMMigyBDHkMcAxoDF8MVgxODEUMPQw0DCwMJAwbDBMMCgwCDPoL"
    b"8QvpC+EL2QvRC8gLwAu4C7ALqAugC5gLkAuIC4ALeAtwC2gLYAtYC1ALSAtBCzkLMQspCyILGgsSCwsLAwv7CvQK7ArlCt0K"
    b"1grOCscKvwq4CrAKqQqhCpoKkwqLCoQKfQp2Cm4KZwpgClkKUgpKCkMKPAo1Ci4KJwogChkKEgoLCgQK/Qn2Ce8J6AniCdsJ"
    b"1AnNCcYJwAm5CbIJqwmlCZ4JlwmRCYoJgwl9CXYJcAlpCWMJXAlWCU8JSQlCCTwJNgkvCSkJIwkcCRYJEAkJCQMJ/Qj3CPAI"
    b"6gjkCN4I2AjSCMwIxQi/CLkIswitCKcIoQibCJUIjwiKCIQIfgh4CHIIbAhmCGAIWwhVCE8ISQhECD4IOAgzCC0IJwgiCBwI"
    b"FggRCAsIBgiJPhA+mD0iPa48PDzMO1077zqEOhk6sTlJOeQ4fzgcOLo3Wjf7Np02QDblNYs1MjXaNIM0LjTZM4YzMzPiMpEy"
    b"QjL0MaYxWTEOMcMweTAwMOgvoS9aLxUv0C6MLkguBi7ELYMtQi0DLcQshixILAsszyuTK1grHivkKqsqcio6KgMqzCmVKWAp"
    b"Kin2KMIojihbKCgo9ifEJ5MnYicyJwIn0yakJnYmSCYaJu0lwCWUJWglPSURJeckvCSSJGkkPyQXJO4jxiOeI3cjTyMpIwIj"
    b"3CK2IpEibCJHIiIi/iHaIbYhkyFwIU0hKiEIIeYgxSCjIIIgYSBBICAgACDgH8AfoR8="
)
# end of values
