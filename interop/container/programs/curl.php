<?php
// Asks for the URL in its argument by PHP's curl, which the libraries of PHP use, trusting what it trusts by itself.
$asked = curl_init($argv[1]);
curl_setopt_array($asked, [CURLOPT_RETURNTRANSFER => true, CURLOPT_FAILONERROR => true]);
if (curl_exec($asked) === false) {
    fwrite(STDERR, curl_error($asked));
    exit(1);
}
