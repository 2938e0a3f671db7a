// Topology files that are cut, spoiled or made to hurt: each is refused in one line or read in
// part, and what was read can be used.
#include <fstream>
#include <sstream>

#include "harness/catch.h"
#include "topology/detect.h"
#include "topology/machine_source.h"
#include "topology/xml_reader.h"

using namespace fccl;

namespace {

std::string data_text(const std::string& name) {
  std::ifstream file(std::string(FCCL_TEST_SOURCE "/test/topology/data/") + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::string& islands() {
  static const std::string text = data_text("pci_islands_4gpu.xml");
  return text;
}

std::string swap(const std::string& from, const std::string& to) {
  std::string text = islands();
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

void use(MachineFacts machine) {
  machine.host_id = machine.boot_id_hash = 1;
  machine.allowed.add(0);
  Result<std::vector<RankFacts>> ranks = facts_from_machine(machine, 4);
  if (ranks.ok()) CHECK_FALSE(comm_json(classify(*ranks)).empty());
  CHECK_FALSE(machine_json(machine).empty());
  CHECK_FALSE(machine_text(machine).empty());
}

}  // namespace

TEST_CASE("xml_reader_reads_what_hwloc_writes") {
  Result<XmlElement> root = read_xml(
      "<?xml version=\"1.0\"?>\n<!DOCTYPE a SYSTEM \"a.dtd\">\n<!-- x -->\n"
      "<a one=\"1\" two = '&lt;&amp;&quot;&#65;&#x42;&#8364;'>text &gt;<b/><!-- y --><b x=\"/>\"> "
      "in"
      " </b></a>\n");
  INFO(root.status().text());
  REQUIRE(root.ok());
  CHECK(root->attribute("two") == "<&\"AB?");
  CHECK(root->attribute("three").empty());
  CHECK(root->text == "text >");
  REQUIRE(root->children.size() == 2);
  CHECK(root->children[1].attribute("x") == "/>");
  CHECK(root->children[1].text == " in ");
}

TEST_CASE("xml_reader_refuses_the_rest") {
  std::string deep, wide = "<a>", attributes = "<a";
  for (int i = 0; i < 100000; ++i) deep += "<a>";
  for (int i = 0; i < 200001; ++i) wide += "<b/>";
  for (int i = 0; i < 100; ++i) attributes += " x" + std::to_string(i) + "=\"\"";
  const std::string rows[] = {
      "",
      " ",
      "text",
      "<",
      "<a",
      "<a>",
      "<a/",
      "</a>",
      "<a></b>",
      "<a></a",
      "<a/><b/>",
      "<a/>text",
      "<a b>",
      "<a b=>",
      "<a b=c/>",
      "<a b=\"c/>",
      "<a>&none;</a>",
      "<a>&#;</a>",
      "<a>&#x;</a>",
      "<a>&#99999999999;</a>",
      "<a>&amp</a>",
      "<!-- x",
      "<a><!-- x</a>",
      "<a><![CDATA[x]]></a>",
      "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
      std::string("<a\0/>", 5),
      deep,
      wide + "</a>",
      attributes + "/>",
      std::string(kMaxXmlBytes + 1, ' '),
  };
  for (const std::string& row : rows) {
    CAPTURE(row.substr(0, 60));
    const Status status = read_xml(row).status();
    CHECK(status.code() == Code::InvalidArgument);
    CHECK_FALSE(status.text().empty());
  }
}

TEST_CASE("xml_errors_name_the_line") {
  CHECK(read_xml("<a>\n<b>\n</c>\n</a>").status().text().find("line 3") == 0);
}

TEST_CASE("xml_topologies_made_to_hurt_are_refused") {
  REQUIRE(machine_from_xml(islands()).ok());
  const std::pair<const char*, std::string> rows[] = {
      {"another XML", "<html><body/></html>"},
      {"no objects", "<topology version=\"2.0\"></topology>"},
      {"no version", "<topology><object type=\"PU\"/></topology>"},
      {"format 1", "<topology version=\"1.0\"><object type=\"PU\"/></topology>"},
      {"huge node", swap("\"NUMANode\" os_index=\"0\"", "\"NUMANode\" os_index=\"4294967295\"")},
      {"bad address", swap("pci_busid=\"0000:12:00.0\"", "pci_busid=\"0000:12:00.9\"")},
      {"no address", swap("pci_busid=\"0000:12:00.0\"", "")},
      {"bad class", swap("0300 [10de:2204] [0000:0000] a1", "0300")},
      {"bad bridge", swap("bridge_pci=\"0000:[00-7f]\"", "bridge_pci=\"\"")},
  };
  for (const auto& [name, text] : rows) {
    CAPTURE(name);
    const Status status = machine_from_xml(text).status();
    CHECK(status.code() == Code::InvalidArgument);
    INFO(status.text());
    CHECK(status.text().find("no usable hwloc XML: ") == 0);
    CHECK(status.text().find('\n') == std::string::npos);
  }
}

TEST_CASE("xml_absurd_numbers_do_no_harm") {
  const std::string matrix =
      "<distances2 type=\"PU\" kind=\"5\" name=\"NUMALatency\" indexing=\"os\" ";
  const std::string rows[] = {
      swap("os_index=\"0\"", "os_index=\"-1\""),
      swap("cpuset=\"0x", "cpuset=\"" + std::string(100000, ',') + "0x"),
      swap("cpuset=\"0x0000ffff\"", "cpuset=\"0xf...f\""),
      swap("nodeset=\"0x00000001\"", "nodeset=\"\""),
      swap("local_memory=\"137438953472\"", "local_memory=\"18446744073709551615\""),
      swap("</topology>", matrix + "nbobjs=\"65536\"/></topology>"),
      swap("</topology>", matrix + "nbobjs=\"-1\"/></topology>"),
      swap("</topology>",
           matrix + "nbobjs=\"1\"><indexes length=\"2\">7 </indexes><u64values "
                    "length=\"2\">10 </u64values></distances2></topology>"),
      swap("</topology>",
           matrix + "nbobjs=\"2\"><indexes length=\"2\">0 </indexes><u64values "
                    "length=\"2\">10 </u64values></distances2></topology>"),
  };
  for (const std::string& row : rows) {
    Result<MachineFacts> machine = machine_from_xml(row);
    INFO(machine.status().text());
    REQUIRE(machine.ok());
    CHECK(machine->node_distance.empty());
    CHECK(machine->gpus() == 4);
    use(*machine);
  }
}

TEST_CASE("xml_cut_and_spoiled_topologies_never_break_the_reader") {
  for (const char* name : {"nvlink_mesh_switch_8gpu.xml", "two_sockets_no_gpu.xml"}) {
    const std::string good = data_text(name);
    REQUIRE(machine_from_xml(good).ok());
    for (size_t bytes = 0; bytes + 12 < good.size(); bytes += 97) {
      CAPTURE(bytes);
      CHECK_FALSE(machine_from_xml(good.substr(0, bytes)).ok());
    }
    uint64_t seed = 88172645463325252u;
    int read = 0;
    for (int round = 0; round < 300; ++round) {
      std::string text = good;
      seed ^= seed << 13;
      seed ^= seed >> 7;
      seed ^= seed << 17;
      text[seed % text.size()] = static_cast<char>(' ' + seed / 100000 % 95);
      Result<MachineFacts> machine = machine_from_xml(text);
      if (!machine.ok()) continue;
      ++read;
      use(*machine);
    }
    CHECK(read > 50);
  }
}
