// Picks the Catch2 of the system: version 2 on Debian 12, version 3 elsewhere.
#pragma once
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
