import sys

from tests.fuzz.fuzzing import main

sys.exit(main())
