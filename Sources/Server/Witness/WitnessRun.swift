import ThicketCrypto
import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// One run of a witness (treesystem 4.12): it fetches a log's newest head, demands that the log goes on from the newest
/// head that it has seen, keeps the new one, confirms it with its own key, and gives the confirmation to the server.
/// Works without a server of its own; the network and the disk are passed in.
struct WitnessRun {
    /// An answer of the server.
    struct Answer: Sendable {
        let status: Int
        let body: [UInt8]
    }

    /// What came of a run.
    enum Outcome: Equatable {
        /// The server has the confirmation of this head.
        case confirmed(KeyLogHead)
        /// The log contradicts what this witness has seen: it confirms nothing until that is explained.
        case fork(KeyLogEvidence)
    }

    /// Why a run confirmed nothing. It may be repeated.
    struct Failure: Error, Equatable, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }

    let app: String
    /// The witness's key.
    let key: Ed25519.SigningKey
    /// The log's key from another source; nil: the server's, at the first run.
    var logKey: Ed25519.VerifyingKey?
    /// Sends a request below the app's path and returns the answer.
    let ask: (_ method: String, _ path: String, _ body: [UInt8]) throws(Failure) -> Answer
    /// Returns when the state is on disk. Called before a confirmation leaves: what was confirmed is never forgotten.
    let keep: (_ state: [UInt8]) throws(Failure) -> Void

    /// Longest state in bytes: a reader without users.
    static let stateBytesMax = 16 << 10

    /// - Parameters:
    ///   - state: as `keep` got it at the run before; nil: the first run.
    ///   - now: milliseconds since 1970.
    func run(_ state: [UInt8]?, now: UInt64) throws(Failure) -> Outcome {
        var known: KeyLogReader?
        if let state {
            var reader = try reader(of: state)
            if let fork = reader.fork {
                // Two honest heads without a proof accuse no server: it may still show one.
                guard let way = connection(of: fork), reader.explain(way) else {
                    return .fork(Self.evidence(fork, reader, now))
                }
            }
            known = reader
        }
        let shown = try head()
        var reader: KeyLogReader
        if let known { reader = known } else { reader = try newReader(shown) }
        if reader.logKey != shown.key { reader = try followed(reader, shown, now) }
        guard let head = shown.head else {
            throw Failure(
                reader.head == nil
                    ? "the log has no entry yet: nothing is there to confirm"
                    : "the server shows an empty log, and this witness has confirmed one with entries")
        }
        return try confirm(head, &reader, now)
    }

    private func confirm(
        _ head: KeyLogHead, _ reader: inout KeyLogReader, _ now: UInt64
    ) throws(Failure) -> Outcome {
        var gossip = reader.compare(head, now: now)
        if case .ask(let older, let newer) = gossip {
            gossip = reader.compare(head, way: try way(older, newer), now: now)
        }
        switch gossip {
        case .consistent: break
        case .alarm(let fork):
            try keep(reader.bytes)
            return .fork(Self.evidence(fork, reader, now))
        case .refused(let error): throw Failure(error.description)
        case .ask: throw Failure("the server's proof is between other heads than asked for")
        }
        // An older head, even of this log, is not confirmed: devices would accept it for another hour.
        guard reader.head?.size == head.size else {
            throw Failure("the server shows an older head than this witness has confirmed")
        }
        let confirmation: KeyLogWitness
        do throws(KeyLogError) {
            confirmation = try KeyLogWitness(confirming: head, app: app, logKey: reader.logKey, key: key)
            try confirmation.check(app: app, logKey: reader.logKey, now: now)
        } catch { throw Failure(error.description) }
        try keep(reader.bytes)
        let answer = try ask("POST", "keylog/witness", JSONValue.object(confirmation.json).serialized())
        guard answer.status == 200 else { throw Failure("the server refused the confirmation: \(Self.text(answer))") }
        return .confirmed(head)
    }

    // MARK: - What the server shows

    private struct Shown {
        let key: Ed25519.VerifyingKey
        let head: KeyLogHead?
        let rotations: [[UInt8]]
    }

    private func head() throws(Failure) -> Shown {
        let answer = try ask("GET", "keylog/head", [])
        guard answer.status == 200, let object = (try? JSONValue(parsing: answer.body))?.objectValue,
            let octets = Self.octets(object["key"]), let key: Ed25519.VerifyingKey = try? .init(octets)
        else { throw Failure("the server does not show its log: \(Self.text(answer))") }
        var head: KeyLogHead?
        if let bytes = Self.octets(object["head"]) {
            do throws(KeyLogError) { head = try KeyLogHead(bytes) } catch { throw Failure(error.description) }
        }
        return Shown(
            key: key, head: head, rotations: (object["rotations"]?.arrayValue ?? []).compactMap { Self.octets($0) })
    }

    private func way(_ older: UInt64, _ newer: UInt64) throws(Failure) -> KeyLogWay {
        let answer = try ask("GET", "keylog/consistency?older=\(older)&newer=\(newer)", [])
        switch answer.status {
        case 200:
            guard let bytes = Self.octets((try? JSONValue(parsing: answer.body))?["proof"]),
                let way = try? KeyLogConsistency(bytes)
            else { return .withheld }
            return .given(way)
        // The server has answered that there is none.
        case 400, 404: return .withheld
        default: throw Failure("the server does not show a proof: \(Self.text(answer))")
        }
    }

    /// - Returns: nil: the server shows none, or cannot be asked now.
    private func connection(of fork: KeyLogFork) -> KeyLogConsistency? {
        guard fork.older.size < fork.newer.size, case .given(let way)? = try? way(fork.older.size, fork.newer.size)
        else { return nil }
        return way
    }

    private func newReader(_ shown: Shown) throws(Failure) -> KeyLogReader {
        do throws(KeyLogError) {
            if let logKey, logKey != shown.key {
                throw KeyLogError(.notSigned, "the log has another key than --log-key")
            }
            return try KeyLogReader(app: app, logKey: shown.key)
        } catch { throw Failure(error.description) }
    }

    private func reader(of state: [UInt8]) throws(Failure) -> KeyLogReader {
        do throws(KeyLogError) {
            let reader = try KeyLogReader(state)
            guard reader.app.utf8.elementsEqual(app.utf8) else {
                throw KeyLogError(.otherApp, "the state is of the app \(reader.app)")
            }
            return reader
        } catch { throw Failure(error.description) }
    }

    /// Follows the log's key from the one that this witness knows.
    private func followed(_ reader: KeyLogReader, _ shown: Shown, _ now: UInt64) throws(Failure) -> KeyLogReader {
        do throws(KeyLogError) {
            var trusted = reader.logKey
            for bytes in shown.rotations {
                let statement = try LogKeyRotation(bytes)
                guard statement.old == trusted else { continue }
                try statement.check(app: app, trusted: trusted)
                trusted = statement.new
            }
            guard trusted == shown.key else {
                throw KeyLogError(.notSigned, "the log has another key, and the known one has not signed it")
            }
        } catch { throw Failure(error.description) }
        var proof: KeyLogConsistency?
        if let old = reader.head, let head = shown.head, old.size < head.size,
            case .given(let way) = try way(old.size, head.size)
        {
            proof = way
        }
        do throws(KeyLogError) {
            return try reader.following(shown.key, head: shown.head, way: proof, now: now)
        } catch { throw Failure(error.description) }
    }

    private static func evidence(_ fork: KeyLogFork, _ reader: KeyLogReader, _ now: UInt64) -> KeyLogEvidence {
        KeyLogEvidence(of: .fork(fork), reader: reader, lookup: nil, now: now)
    }

    private static func octets(_ value: JSONValue?) -> [UInt8]? {
        value?.stringValue.flatMap { Base64.decodeURL(Array($0.utf8)[...]) }
    }

    private static func text(_ answer: Answer) -> String {
        let object = (try? JSONValue(parsing: answer.body))?.objectValue
        return object?["message"]?.stringValue.map { "\($0) (\(answer.status))" } ?? "\(answer.status)"
    }
}
