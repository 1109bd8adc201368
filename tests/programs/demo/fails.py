print("about to divide")
print(1 / 0)
