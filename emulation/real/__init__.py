"""The start of many ranks for real: a real TCPStore, real sockets, real messages, virtual ranks."""
