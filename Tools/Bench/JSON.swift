import Foundation
import ThicketProtocol

/// Reading JSON, and reading and writing it, in MB per second of CPU time: a change of 292 bytes, 10 KB and 1 MB.
///
/// Floors: Foundation's `JSONSerialization`, and simdjson and RapidJSON where g++ and their headers are installed;
/// without them their goals are printed as not measured. Ours checks everything (UTF-8, escapes, duplicate keys); "and
/// write" copies the untouched parts, as the server does.
func jsonSpeed() throws -> [Figure] {
    let texts: [(name: String, text: [UInt8])] = [
        ("292 B", Array(changeText.utf8)), ("10 KB", list(bytes: 10_000)), ("1 MB", list(bytes: 1_000_000)),
    ]
    let foreign: ForeignJSON? = try ForeignJSON()
    return try texts.flatMap { name, text in
        try verify(text)
        var samples: [String: [Double]] = [:]
        for _ in 0..<5 {
            for (key, value) in try ownRates(text) { samples[key, default: []].append(value) }
            for (key, value) in try foreign?.rates(text) ?? [:] {
                samples[key, default: []].append(value)
            }
        }
        return figures(name, samples, hasForeign: foreign != nil)
    }
}

/// Checks each timed function once by its result, since one that does nothing would be quick.
private func verify(_ text: [UInt8]) throws {
    var writer = JSONWriter(reservingBytes: text.count)
    writer.write(try JSONDocument(parsing: text).root)
    guard writer.bytes == text else { throw BenchError("a text that was read and written is another") }
    let tree = try JSONValue(parsing: text)
    guard try JSONValue(parsing: tree.serialized()) == tree else { throw BenchError("a tree came back as another") }
    let other: Any = try JSONSerialization.jsonObject(with: Data(text))
    guard try JSONSerialization.data(withJSONObject: other).count > text.count / 2 else {
        throw BenchError("JSONSerialization lost half of a text")
    }
}

/// MB per second of each function, by name. A failure inside ends the scenario.
private func ownRates(_ text: [UInt8]) throws -> [String: Double] {
    let data = Data(text)
    return [
        "read": try rate(text) { try JSONDocument(parsing: text).root.kind == .null ? 0 : 1 },
        "round": try rate(text) {
            var writer = JSONWriter(reservingBytes: text.count)
            writer.write(try JSONDocument(parsing: text).root)
            return writer.bytes.count
        },
        "tree": try rate(text) { try JSONValue(parsing: text).serialized().count },
        // Its result is not inspected here: a type check of an `Any` costs this reader as much again.
        "apple read": try rate(text) {
            _ = try JSONSerialization.jsonObject(with: data)
            return 1
        },
        "apple round": try rate(text) {
            try JSONSerialization.data(withJSONObject: JSONSerialization.jsonObject(with: data)).count
        },
    ]
}

private func figures(_ name: String, _ samples: [String: [Double]], hasForeign: Bool) -> [Figure] {
    func speed(_ what: String, _ key: String) -> Figure {
        Figure(name: "\(name): \(what)", samples: samples[key] ?? [], unit: "MB/s")
    }
    func ratio(_ what: String, _ one: String, _ other: String, _ goal: Figure.Goal?) -> Figure {
        let values: [Double] = zip(samples[one] ?? [], samples[other] ?? []).map { $0 / $1 }
        return Figure(name: "  \(name): \(what)", samples: values, unit: "", goal: goal)
    }
    let isChange: Bool = name == "292 B"
    let own: [Figure] = [
        speed("read", "read"), speed("read and write", "round"), speed("whole tree and back", "tree"),
        speed("floor, JSONSerialization read", "apple read"),
        ratio("read, times JSONSerialization", "read", "apple read", isChange ? .atLeast(5) : nil),
        speed("floor, JSONSerialization read and write", "apple round"),
        ratio("read and write, times JSONSerialization", "round", "apple round", isChange ? .atLeast(20) : nil),
    ]
    let foreign: [Figure] = [
        speed("floor, simdjson read", "simdjson"),
        ratio("read, times simdjson", "read", "simdjson", isChange ? nil : .atLeast(0.4)),
        speed("floor, RapidJSON read and write", "rapidjson"),
        ratio("read and write, times RapidJSON", "round", "rapidjson", .atLeast(1.5)),
    ]
    if hasForeign { return own + foreign }
    return own
        + foreign.filter { $0.goal != nil }.map {
            Figure(name: $0.name, unit: $0.unit, goal: $0.goal, missing: ForeignJSON.missing)
        }
}

private let changeText: String =
    "{\"clientid\":\"bench-00000000000000000000000000000001\",\"id\":\"k00000001\",\"o\":\"M\",\"sv\":17,\"v\":{\"text\":"
    + "{\"o\":\"d\",\"v\":\"=120\\t+some more words that a person typed, with caf\u{e9}\\t-4\\t=33\"},\"modified\":"
    + "{\"o\":\"r\",\"v\":1700000000.25},\"tags\":{\"o\":\"L\",\"v\":{\"0\":{\"o\":\"+\",\"v\":\"new\"}}}},\"ccid\":"
    + "\"0123456789abcdef0123456789abcdef\"}"

/// Typical objects, in a list.
private func list(bytes: Int) -> [UInt8] {
    var text: [UInt8] = [UInt8(ascii: "[")]
    var number = 0
    while text.count < bytes {
        if number > 0 { text.append(UInt8(ascii: ",")) }
        let words = String(repeating: "words and more ", count: 1 + number % 24)
        text += Array(
            "{\"id\":\(number),\"title\":\"Note number \(number)\",\"text\":\"\(words)\\n\",\"done\":\(number % 2 == 0),\"tags\":[\"a\",\"b\"],\"at\":1700000\(number % 1000).5}"
                .utf8)
        number += 1
    }
    text.append(UInt8(ascii: "]"))
    return text
}

/// MB per second of CPU time, over at least 40 ms.
///
/// - Parameter body: returns a value from its result, never 0, so that the compiler cannot remove it.
private func rate(_ text: [UInt8], _ body: () throws -> Int) throws -> Double {
    var count = 0
    var made = 0
    let start: UInt64 = cpuNanoseconds()
    var now: UInt64 = start
    let batch: Int = max(1, 50_000 / text.count)
    while now - start < 40_000_000 {
        for _ in 0..<batch { made += try body() }
        count += batch
        now = cpuNanoseconds()
    }
    guard made >= count else { throw BenchError("a loop has timed nothing") }
    return Double(count * text.count) / (Double(now - start) / 1e9) / 1e6
}

/// CPU time of this thread.
func cpuNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// A small C++ program around two libraries, compiled when the scenario runs: it reads a text from a file and prints a
/// rate for each.
private struct ForeignJSON {
    static let missing = "apt-get install g++ libsimdjson-dev rapidjson-dev (./dev setup --tests)"

    private let folder: TemporaryFolder

    /// nil where g++ or a library is missing.
    init?() throws {
        guard access("/usr/include/simdjson.h", R_OK) == 0, access("/usr/include/rapidjson/document.h", R_OK) == 0,
            access("/usr/bin/g++", X_OK) == 0
        else { return nil }
        folder = try TemporaryFolder()
        try Data(Self.source.utf8).write(to: URL(fileURLWithPath: folder.path + "/json.cpp"))
        let built: String = try shell(
            "g++ -O3 -std=c++17 -march=native -o '\(folder.path)/json' '\(folder.path)/json.cpp' -lsimdjson && echo built"
        )
        guard built.hasPrefix("built") else { throw BenchError("g++ could not build the JSON floors") }
    }

    func rates(_ text: [UInt8]) throws -> [String: Double] {
        try Data(text).write(to: URL(fileURLWithPath: folder.path + "/text"))
        let output: String = try shell("'\(folder.path)/json' '\(folder.path)/text'")
        var rates: [String: Double] = [:]
        for line in output.split(separator: "\n") {
            let words: [Substring] = line.split(separator: " ")
            if words.count == 2, let value: Double = Double(words[1]) { rates[String(words[0])] = value }
        }
        guard rates["simdjson"] != nil, rates["rapidjson"] != nil else {
            throw BenchError("the JSON floors printed no figures: \(output)")
        }
        return rates
    }

    private static let source: String = """
        #include <simdjson.h>
        #include <rapidjson/document.h>
        #include <rapidjson/stringbuffer.h>
        #include <rapidjson/writer.h>
        #include <cstdio>
        #include <ctime>
        #include <fstream>
        #include <sstream>
        static double now() { timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec / 1e9; }
        template <class F> static double rate(size_t bytes, F body) {
            long n = 0, batch = bytes < 50000 ? 50000 / bytes : 1; double s = now(), e;
            do { for (long i = 0; i < batch; i++) body(); n += batch; e = now(); } while (e - s < 0.04);
            return n * (double)bytes / (e - s) / 1e6;
        }
        int main(int, char **v) {
            std::ifstream f(v[1]); std::stringstream b; b << f.rdbuf(); std::string s = b.str();
            simdjson::padded_string p(s); simdjson::dom::parser parser; volatile long sink = 0;
            { simdjson::dom::element e; rapidjson::Document d;
              if (parser.parse(p).get(e) || d.Parse<rapidjson::kParseValidateEncodingFlag>(s.data(), s.size()).HasParseError())
                  return 1; }
            printf("simdjson %f\\n", rate(s.size(), [&] { simdjson::dom::element e; sink += parser.parse(p).get(e); }));
            printf("rapidjson %f\\n", rate(s.size(), [&] {
                rapidjson::Document d; d.Parse<rapidjson::kParseValidateEncodingFlag>(s.data(), s.size());
                rapidjson::StringBuffer o; rapidjson::Writer<rapidjson::StringBuffer> w(o); d.Accept(w); sink += o.GetSize(); }));
        }
        """
}

/// The output of a shell command.
func shell(_ command: String) throws -> String {
    guard let pipe: UnsafeMutablePointer<FILE> = popen(command, "r") else { throw BenchError("cannot run a shell") }
    var text: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4_096)
    while case let count = fread(&chunk, 1, chunk.count, pipe), count > 0 { text += chunk[0..<count] }
    guard pclose(pipe) == 0 else { throw BenchError("this command failed: \(command)") }
    return String(decoding: text, as: UTF8.self)
}
