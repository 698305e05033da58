"""What a staggered schedule does at a call: plain.py is the definition, viper.py the same in native code."""
