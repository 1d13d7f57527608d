"""What `rankscope demo` is made of: a real training, a real failure, and somebody who watches."""
