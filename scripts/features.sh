#!/bin/sh
# The cargo features whose libraries are here, separated by commas.
features=""
[ -e /usr/include/dds/dds.h ] && features="$features,cyclonedds"
[ -e /usr/include/fastdds/dds/domain/DomainParticipant.hpp ] && features="$features,fastdds"
echo "${features#,}"
