import Testing

/// Calls that must not be made, each with its replacement.
@Suite("Banned calls")
struct BannedCallTests {
    struct Rule: Sendable, CustomTestStringConvertible {
        /// Text that must not occur in code.
        let pattern: String
        let instead: String
        /// Folders in which the rule holds.
        let folders: [String]
        /// Paths that are excepted, with the reason in the comment beside the entry.
        var except = [String]()
        var testDescription: String { "\(pattern) in \(folders.joined(separator: ", "))" }
    }

    /// Folders whose code does no I/O and has no clock.
    private static let pure = [
        "Sources/Protocol", "Sources/Crypto", "Sources/Auth", "Sources/Scheduling", "Sources/Server/Session",
        "Sources/Server/Sync",
    ]

    /// Tools except the benchmarks, which wait for clocks, and the fuzzer's functions.
    private static let tools = [
        "Accept", "Acceptance", "Crash", "Demo", "Endurance", "Endure", "FaultDisk", "Processes", "ReleaseLog",
        "ServerProcess", "Simulation", "Soak", "Sweep", "ThreatRun", "Threats",
    ].map { (name: String) in "Tools/\(name)" }

    static let rules =
        [
            Rule(
                pattern: "try!", instead: "a typed error, or a precondition that names the broken rule",
                folders: ["Sources"] + tools),
            Rule(pattern: "as!", instead: "a check and a typed error", folders: ["Sources"] + tools),
            Rule(
                pattern: "fatalError(", instead: "a typed error; preconditionFailure with the rule for the impossible",
                folders: ["Sources"] + tools),
            Rule(
                pattern: " print(", instead: "the log, or Terminal.write in a program", folders: ["Sources"] + tools,
                // A case of an enumeration, not the call.
                except: ["Sources/CommandLine/Program.swift", "Sources/CommandLine/Invocation+Parsing.swift"]),
            Rule(
                pattern: "import Foundation", instead: "Glibc, or FoundationEssentials in the client",
                folders: [
                    "Sources/Platform", "Sources/Protocol", "Sources/Crypto", "Sources/SQLite", "Sources/Net",
                    "Sources/Scheduling", "Sources/Server", "Sources/CommandLine",
                ]),
            Rule(
                pattern: "Date()", instead: "a clock that is passed in",
                folders: ["Sources/Protocol", "Sources/Server", "Sources/Net", "Sources/Scheduling"]),
            Rule(
                pattern: "t.random(in", instead: "a generator that is passed in, or RandomBytes",
                folders: [
                    "Sources/Protocol", "Sources/Server", "Sources/Net", "Sources/Scheduling",
                ]),
            Rule(
                pattern: "Glibc.sleep(", instead: "waiting for an event with a deadline",
                folders: ["Sources", "Tests"] + tools),
            Rule(
                pattern: "usleep(", instead: "waiting for an event with a deadline",
                folders: ["Sources", "Tests"] + tools,
                // They poll for an event of another thread or process, with a deadline.
                except: ["Tests/ServerTests/Net/LoopThread.swift", "Tools/ServerProcess/ServerProcess.swift"]),
            Rule(
                pattern: "Task.sleep", instead: "a stepped clock, or a named event", folders: ["Tests"] + tools,
                // Between two looks at what no event reports. The others pace a load that runs for hours, and typing.
                except: [
                    "Tests/Support/Cases/Pause.swift", "Tools/Endurance/Endurance.swift", "Tools/Demo/Stage.swift",
                ]),
            Rule(
                pattern: "Thread.sleep", instead: "a stepped clock, or a named event",
                folders: ["Sources", "Tests"] + tools),
            Rule(pattern: "clock_gettime(", instead: "a moment that is passed in", folders: pure),
            Rule(pattern: "O_RDONLY", instead: "bytes that are passed in", folders: pure),
            Rule(pattern: "Glibc.", instead: "bytes that are passed in", folders: pure),
            Rule(
                pattern: "getenv(", instead: "settings that are passed in", folders: ["Sources"] + tools,
                // In debug builds, to record a run of tests in all its processes; and the variables that a child
                // process inherits.
                except: ["Sources/Crypto/AEAD/SealRecorder.swift", "Tools/Processes/ChildProcess.swift"]),
            Rule(pattern: "system(", instead: "posix_spawn with a list of words", folders: ["Sources"] + tools),
            Rule(
                pattern: "unsafeBitCast", instead: "a conversion that is defined", folders: ["Sources"] + tools,
                // SQLITE_TRANSIENT is a cast in C that Swift does not import.
                except: ["Sources/SQLite/Statement.swift"]),
            Rule(pattern: "@preconcurrency", instead: "types that are Sendable", folders: ["Sources"] + tools),
        ]

    /// The time of a comparison must not reveal how much of a secret was right.
    static let secrets = [
        "hash", "verifier", "signature", "secret", "password", "code", "expected", "recovery", "shown", "mac", "tag",
    ].flatMap { (name: String) in
        ["==", "!="].flatMap { (sign: String) in
            [" \(name) \(sign) ", ".\(name) \(sign) "] + [" ", ",", ")", " {"].map { " \(sign) \(name)\($0)" }
        } + ["\(name).elementsEqual(", ".elementsEqual(\(name)", "\(name).starts(with"]
    }.map { (pattern: String) in
        Rule(pattern: pattern, instead: "ConstantTime.equal", folders: ["Sources/Auth", "Sources/Server/Access"])
    }

    @Test("T14: secrets are compared in constant time, never by ==, != or byte by byte", arguments: secrets)
    func comparisons(rule: Rule) { calls(rule: rule) }

    private func isName(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "_") || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }

    /// Whether a pattern begins with the name of a type.
    private func isNamed(_ pattern: String) -> Bool { pattern.first?.isUppercase ?? false }

    @Test("a banned call is not made", arguments: rules)
    func calls(rule: Rule) {
        for folder in rule.folders {
            for path in SwiftText.paths(folder) where !rule.except.contains(path) {
                let code = SwiftText.code(path)
                for place in Bytes.places(of: rule.pattern, in: code) {
                    // The end of a longer name is another name.
                    if isNamed(rule.pattern), place > 0, isName(code[place - 1]) { continue }
                    // Whether a secret exists is not secret.
                    if code[(place + rule.pattern.utf8.count)...].starts(with: "nil".utf8) { continue }
                    let line = Bytes.line(of: place, in: code)
                    Issue.record("\(path):\(line): '\(rule.pattern)' is banned; write \(rule.instead)")
                }
            }
        }
    }

    @Test("code that switches off a check of the compiler has a comment that names what protects the state")
    func unsafeMarks() {
        for path in SwiftText.paths("Sources") {
            let code = SwiftText.code(path)
            for mark in ["@unchecked Sendable", "nonisolated(unsafe)"] {
                for place in Bytes.places(of: mark, in: code) {
                    let number = Bytes.line(of: place, in: code) - 1
                    let lines = Repository.lines(path)
                    // The comment is above the declaration, on its line, or on the first lines inside.
                    let near = lines[max(0, number - 8)...min(lines.count - 1, number + 3)]
                    #expect(
                        near.contains { $0.contains("//") },
                        "\(path):\(number + 1): no comment names what protects this state")
                }
            }
        }
    }

    @Test(
        "the scanner keeps code and removes comments and strings",
        arguments: [
            ("a // b\nc", "a \nc"), ("a /* b /* c */ d */ e", "a  e"), (#"x("try!\" y") z"#, #"x("") z"#),
            ("\"\"\"\nx\n\"\"\" + y", "\n\n + y"),
        ])
    func scanner(text: String, code: String) {
        #expect(String(decoding: SwiftText.stripped(Array(text.utf8)), as: UTF8.self) == code)
    }
}
