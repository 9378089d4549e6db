import sys

from sdk.conformance.run import main

sys.exit(main())
