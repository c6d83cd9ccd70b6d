// The name that a misspelt one may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace taeda::python {

// ". Did you mean 'dim'?" for 'dims': the known name that is fewest edits away, where these are
// few; empty where none is near.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string_view>& known);

// "it takes input, dim by keyword", or that it takes none; each name once.
std::string keywords_text(const std::vector<std::string_view>& known);

}  // namespace taeda::python
