"""The memory bus on the host: bounds, a simulation over the device's own objects, figures of boards."""
