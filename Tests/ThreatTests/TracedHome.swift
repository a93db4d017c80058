import Testing
import ThicketCrypto
import ThicketProcesses
import ThicketThreats

/// A home of the real `thicket`, every call of which runs under strace.
final class TracedHome {
    let home = TemporaryFolder("traced-home")
    /// System calls of all runs so far, in their order.
    private(set) var calls = [TracedProgram.Call]()
    /// Files that were opened for writing, created or renamed to.
    private(set) var written = Set<String>()
    private(set) var texts = [(name: String, secret: String)]()
    private let variables: [String: String]

    init(_ variables: [String: String]) { self.variables = variables }

    /// A new canary, recorded.
    func text(_ name: String) -> String {
        let text = "canary\(RandomBytes.hex(8))"
        record(name, text)
        return text
    }

    func record(_ name: String, _ text: String) { texts.append(("the \(name)", text)) }

    /// Runs `thicket` to its end, which has to be good; gives its output.
    @discardableResult
    func run(_ words: [String], input: String = "", _ more: [String: String] = [:]) throws -> String {
        let own = [
            "HOME": home.path, "THICKET_HOME": home.path + "/thicket", "TMPDIR": home.path, "XDG_RUNTIME_DIR": "",
            "SWIFT_BACKTRACE": "enable=no", "THICKET_CHEAP_PASSPHRASES": "1",
        ]
        let run = try TracedProgram(
            [Programs.thicket] + words, input: input, variables: own.merging(variables) { $1 }.merging(more) { $1 })
        guard run.outcome.code == 0 else { throw ProcessError("thicket \(words) ended with \(run.outcome)") }
        #expect(run.unseen.isEmpty, "bytes that strace does not show: \(run.unseen.prefix(3))")
        calls += run.calls
        written.formUnion(run.written)
        return run.outcome.output
    }

    var hunt: CanaryHunt { CanaryHunt(texts.map { Canary($0.name, $0.secret) }, hashed: texts) }

    /// Everything that was handed to the kernel, joined by its target; paths are included.
    func handedOver(sockets: Bool) -> [(name: String, bytes: [UInt8])] {
        var places = [String: [UInt8]]()
        for call in calls where call.isSocket == sockets && !call.isOutput {
            // Pieces of one message stay together; a zero ends it.
            places[call.target.isEmpty ? call.name : call.target, default: []] += call.texts.joined() + [0]
        }
        return places.map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }
    }

    /// Ports and paths of sockets to which the program connected.
    var connections: (ports: Set<String>, paths: Set<String>) {
        var (ports, paths): (Set<String>, Set<String>) = ([], [])
        for call in calls where call.name == "connect" {
            if let range = call.line.firstRange(of: "_port=htons(") {
                ports.insert(String(call.line[range.upperBound...].prefix { $0 != ")" }))
            } else if call.line.contains("sun_path") {
                paths.formUnion(call.texts.map { String(decoding: $0, as: UTF8.self) })
            }
        }
        return (ports, paths)
    }

    /// Names that a resolver was asked for (RFC 1035, 4.1.2).
    var namesAsked: Set<String> {
        var names: Set<String> = []
        for call in calls where call.name.hasPrefix("send") && call.target.hasSuffix(":53]") {
            for message in call.texts where message.count > 12 {
                var (labels, place): ([String], Int) = ([], 12)
                while place < message.count, message[place] > 0, place + Int(message[place]) < message.count {
                    let end = place + 1 + Int(message[place])
                    labels.append(String(decoding: message[(place + 1)..<end], as: UTF8.self))
                    place = end
                }
                names.insert(labels.joined(separator: "."))
            }
        }
        return names
    }
}
