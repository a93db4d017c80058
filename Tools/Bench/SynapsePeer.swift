import Glibc
import ThicketProtocol

/// Messages from one account to another at Synapse, a Matrix server, by the load generator of `Peers`.
///
/// `THICKET_SYNAPSE_PYTHON` names a Python that has `matrix-synapse` and `aiohttp` from PyPI. Synapse keeps its data in
/// SQLite here, as thicketd does; its messages are not end-to-end encrypted.
struct SynapsePeer {
    /// Milliseconds.
    struct Times {
        let acknowledged: Double
        let acknowledgedP99: Double
        let visible: Double
        let visibleP99: Double
    }

    private let python: String
    private let folder: String

    /// - Returns: nil when no Python is named.
    init?() {
        guard let python = getenv("THICKET_SYNAPSE_PYTHON").map({ String(cString: $0) }) else { return nil }
        self.python = python
        folder = getenv("THICKET_PEERS").map { String(cString: $0) } ?? "../shared/bench/peers"
    }

    /// One sender and one receiver that waits for the next message.
    func run(messages: Int = 90) throws -> Times {
        let command = """
            . '\(folder)/servers.sh' && PYSYN='\(python)' && start_synapse >&2 && '\(python)' '\(folder)/http_peers.py' \
            synapse fanout http://127.0.0.1:$PORT --n \(messages) --r 1 --pids $PIDS --secret bench; stop_peer >&2
            """
        guard let pipe = popen("bash -s <<'THICKET_END'\n\(command)\nTHICKET_END\n", "r") else {
            throw BenchError("cannot run bash")
        }
        defer { pclose(pipe) }
        var line = [CChar](repeating: 0, count: 1 << 16)
        while fgets(&line, Int32(line.count), pipe) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            guard text.hasPrefix("{"), case .object(let result)? = try? JSONValue(parsing: Array(text.utf8)),
                let acknowledged = Self.number(result, "ack_ms_p50"),
                let visible = Self.number(result, "deliver_ms_p50")
            else { continue }
            return Times(
                acknowledged: acknowledged, acknowledgedP99: Self.number(result, "ack_ms_p99") ?? .nan,
                visible: visible, visibleP99: Self.number(result, "deliver_ms_p99") ?? .nan)
        }
        throw BenchError(
            "Synapse gave no figures: does \(python) have matrix-synapse and aiohttp? Is \(folder) the load generator?")
    }

    private static func number(_ result: JSONObject, _ key: String) -> Double? {
        if case .number(let value)? = result[key] { return value.double }
        return nil
    }
}
