<?php
// Asks for the URL in its argument by PHP's own streams, trusting what they trust by themselves.
exit(file_get_contents($argv[1]) === false ? 1 : 0);
