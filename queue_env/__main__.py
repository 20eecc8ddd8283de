"""`python -m queue_env` is the command line `queue-env`."""

from queue_env.cli import main

if __name__ == "__main__":
    main()
