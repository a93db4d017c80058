import Foundation
import ThicketProtocol

/// Our text differences beside two other programs, on the same texts in the same run: diff-match-patch in C++ (called
/// from Python) and in JavaScript (node).
///
/// Each measures its own CPU time around its calls, after a warm-up, in its own process; the three alternate over the
/// rounds. All compare without a time limit and without semantic clean-up, once by units and once by lines first.
/// Beside C++ only the comparison counts, beside JavaScript also the text of the delta; applying is reading a delta and
/// making the target. The C++ figures include the cost of a call from Python, node's the time of its helper threads.
func diffsBesidePeers() throws -> [Figure] {
    let folder = try TemporaryFolder()
    let cases: [DiffCase] = try DiffCase.all()
    try Data(DiffCase.json(cases)).write(to: URL(fileURLWithPath: folder.path + "/cases.json"))
    let peers: [DiffPeer] = [.javaScript, .cPlusPlus]
    let present: [DiffPeer] = peers.filter(\.isThere)
    for peer in present {
        try Data(peer.script.utf8).write(to: URL(fileURLWithPath: "\(folder.path)/\(peer.name)"))
    }
    var samples: [String: [Double]] = [:]
    for _ in 0..<5 {
        for (key, value) in try ownTimes(cases) { samples["own-\(key)", default: []].append(value) }
        for peer in present {
            for (key, value) in try peer.times(folder.path) {
                samples["\(peer.name)-\(key)", default: []].append(value)
            }
        }
    }
    return cases.flatMap { $0.figures(samples, missing: peers.filter { !$0.isThere }) }
}

/// Two texts, and a delta from one to the other.
private struct DiffCase {
    let name: String
    let number: Int
    let source: [UInt16]
    let target: [UInt16]
    let delta: String

    static func all() throws -> [DiffCase] {
        let shapes: [(name: String, units: Int, edits: Int)] = [
            ("1 KB, 3 edits", 1_000, 3), ("10 KB, 5 edits", 10_000, 5), ("100 KB, 8 edits", 100_000, 8),
            ("5 KB rewritten", 5_000, 0),
        ]
        return try shapes.enumerated().map { number, shape in
            let source: [UInt16] = words(shape.units, seed: UInt64(number) + 1)
            var target: [UInt16] = source
            for edit: Int in 0..<shape.edits {
                let place: Int = target.count * (edit + 1) / (shape.edits + 2)
                target.replaceSubrange(place..<place + 5, with: words(12, seed: UInt64(100 + edit)))
            }
            if shape.edits == 0 { target = words(shape.units, seed: 99) }
            var budget: StepBudget = .unlimited
            let delta: TextDelta = TextDelta(TextDiff.diff(source, target, budget: &budget))
            try check(delta, source, target)
            return DiffCase(name: shape.name, number: number, source: source, target: target, delta: delta.encoded)
        }
    }

    /// The cases for the peers; the texts have no surrogates.
    static func json(_ cases: [DiffCase]) -> [UInt8] {
        JSONValue.array(
            cases.map {
                .object(
                    JSONObject([
                        (key: "source", value: .string(String(decoding: $0.source, as: UTF16.self))),
                        (key: "target", value: .string(String(decoding: $0.target, as: UTF16.self))),
                        (key: "delta", value: .string($0.delta)),
                    ]))
            }
        ).serialized()
    }

    /// Goals: never slower than JavaScript; at most 1.5 times C++ by units, 1.2 by lines; applying in half of
    /// JavaScript's time.
    func figures(_ samples: [String: [Double]], missing: [DiffPeer]) -> [Figure] {
        func time(_ what: String, _ who: String, _ key: String) -> Figure {
            Figure(name: "\(name), \(what)", samples: samples["\(who)-\(number)-\(key)"] ?? [], unit: "ms")
        }
        func beside(_ peer: DiffPeer, _ what: String, _ own: String, _ key: String, _ most: Double) -> [Figure] {
            let title = "  \(name), \(what), times \(peer.title)"
            if missing.contains(peer) {
                return [Figure(name: title, unit: "", goal: .atMost(most), missing: peer.missing)]
            }
            let ratios: [Double] = zip(
                samples["own-\(number)-\(own)"] ?? [], samples["\(peer.name)-\(number)-\(key)"] ?? []
            ).map { $0 / $1 }
            return [
                time("\(what), \(peer.title)", peer.name, key),
                Figure(name: title, samples: ratios, unit: "", goal: .atMost(most)),
            ]
        }
        var figures: [Figure] = []
        for (what, key, most): (String, String, Double) in [("by units", "units", 1.5), ("by lines", "lines", 1.2)] {
            figures.append(time(what, "own", key))
            figures += beside(.cPlusPlus, what, key, key, most)
            figures.append(time("\(what), with delta", "own", "\(key)+"))
            figures += beside(.javaScript, "\(what), with delta", "\(key)+", "\(key)+", 1)
        }
        return figures + [time("applied", "own", "apply")]
            + beside(.javaScript, "applied", "apply", "apply", 0.5)
    }
}

private func ownTimes(_ cases: [DiffCase]) throws -> [String: Double] {
    var times: [String: Double] = [:]
    for one in cases {
        for (key, byLines): (String, Bool) in [("units", false), ("lines", true)] {
            func segments() -> [DiffSegment] {
                var budget: StepBudget = .unlimited
                return TextDiff.diff(one.source, one.target, byLines: byLines, budget: &budget)
            }
            try check(TextDelta(segments()), one.source, one.target)
            times["\(one.number)-\(key)"] = time { segments().count }
            times["\(one.number)-\(key)+"] = time { TextDelta(segments()).encoded.utf8.count }
        }
        // A delta that cannot be applied would be quick.
        try check(TextDelta(parsing: one.delta), one.source, one.target)
        times["\(one.number)-apply"] = time {
            (try? TextDelta(parsing: one.delta).apply(to: one.source).count) ?? 0
        }
    }
    return times
}

/// ms of CPU time, over a round as long as a peer's.
private func time(_ body: () -> Int) -> Double { median(samples(1, nanosecondsMin: 40_000_000, body)) }

/// Another program that compares texts.
private struct DiffPeer: Equatable {
    let name: String
    let title: String
    /// The files that it needs, relative to the folder of the repository.
    let files: [String]
    /// What to install.
    let missing: String
    let script: String

    var isThere: Bool { files.allSatisfy { access($0, R_OK) == 0 } }

    /// ms by case and kind of comparison.
    func times(_ folder: String) throws -> [String: Double] {
        let output: String = try shell("'\(files[0])' '\(folder)/\(name)' '\(folder)/cases.json' '\(files[1])'")
        var times: [String: Double] = [:]
        for line in output.split(separator: "\n") {
            let words: [Substring] = line.split(separator: " ")
            if words.count == 2, let value: Double = Double(words[1]) { times[String(words[0])] = value }
        }
        guard !times.isEmpty else { throw BenchError("\(title) printed no times: \(output)") }
        return times
    }

    static let javaScript = DiffPeer(
        name: "js", title: "JavaScript",
        files: ["/usr/bin/node", "/usr/share/nodejs/googlediff/index.js"],
        missing: "Debian's nodejs and node-googlediff (./dev setup --tests)",
        script: """
            const fs = require('fs'), path = require('path');
            const cases = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
            const library = require(path.resolve(process.argv[3]));
            const dmp = new (library.diff_match_patch || library)();
            dmp.Diff_Timeout = 0;
            const cpu = () => { const c = process.cpuUsage(); return (c.user + c.system) / 1e3; };
            function time(key, body) {
                let sink = 0, start = cpu(), n = 0;
                do { sink += body(); } while (cpu() - start < 200);
                start = cpu();
                let end;
                do { sink += body(); n++; end = cpu(); } while (end - start < 40);
                console.log(key, (end - start) / n, sink > 0 ? '' : 'nothing');
            }
            cases.forEach(({ source, target, delta }, i) => {
                for (const [key, lines] of [['units', false], ['lines', true]]) {
                    if (dmp.diff_text2(dmp.diff_main(source, target, lines)) !== target) throw new Error('wrong diff');
                    time(`${i}-${key}`, () => dmp.diff_main(source, target, lines).length);
                    time(`${i}-${key}+`, () => dmp.diff_toDelta(dmp.diff_main(source, target, lines)).length);
                }
                if (dmp.diff_text2(dmp.diff_fromDelta(source, delta)) !== target) throw new Error('wrong delta');
                time(`${i}-apply`, () => dmp.diff_text2(dmp.diff_fromDelta(source, delta)).length);
            });
            """)

    static let cPlusPlus = DiffPeer(
        name: "cpp", title: "C++", files: [".work/venv/bin/python3", ".work/venv/fast-diff-match-patch"],
        missing: "PyPI's fast-diff-match-patch in .work/venv (./dev setup --tests)",
        script: """
            import json, sys, time
            from fast_diff_match_patch import diff

            def measure(key, body):
                start = time.thread_time_ns()
                while time.thread_time_ns() - start < 40_000_000:
                    body()
                start, count = time.thread_time_ns(), 0
                while True:
                    body()
                    count += 1
                    end = time.thread_time_ns()
                    if end - start >= 40_000_000:
                        break
                print(key, (end - start) / count / 1e6)

            for number, case in enumerate(json.load(open(sys.argv[1], encoding="utf-8"))):
                source, target = case["source"], case["target"]
                for key, lines in (("units", False), ("lines", True)):
                    def run():
                        return diff(source, target, timelimit=0, checklines=lines, cleanup="No", counts_only=True)
                    steps = run()
                    assert sum(n for op, n in steps if op != "+") == len(source)
                    assert sum(n for op, n in steps if op != "-") == len(target)
                    measure(f"{number}-{key}", run)
            """)
}
