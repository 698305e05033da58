"""Measurements that run on the board itself; `kvlab bench` starts them and reads the line they print."""
