from recollect.cli.entry import main

main()
