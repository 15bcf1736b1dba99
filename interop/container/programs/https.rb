# Asks for the URL in its argument, trusting what Ruby trusts by itself.
require "net/http"

answer = Net::HTTP.get_response(URI(ARGV.fetch(0)))
abort answer.code unless answer.is_a?(Net::HTTPOK)
