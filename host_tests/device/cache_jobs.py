"""Runs many recorded jobs in one start, where a start costs more than a job. See cache_job.py.

usage: cache_jobs.py LIST    a line of LIST: JOB DATA OUT KERNELS
"""

import json
import sys

import cache_job

with open(sys.argv[1]) as the_list:
    for line in the_list:
        job, data, out, kernels = line.split()
        with open(job) as f:
            job = json.load(f)
        with open(data, "rb") as the_data, open(out, "wb") as the_out:
            cache_job.run(job, the_data, the_out, kernels)
