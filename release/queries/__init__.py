"""The kinds of query: answers and sensitivity of each, and the engines that compute them."""
