# Where a program finds itself.
echo "user $(id -u) on the host $(hostname), in $(pwd), beside $(ls | tr '\n' ' ')"
