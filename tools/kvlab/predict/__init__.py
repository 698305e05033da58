"""What reserving for a predicted length is worth: a trace against a pool, under three rules of admission.

The rules, the queue and the predictor are the device's own (mpy_kv.admission); here is the time they lack.
"""
