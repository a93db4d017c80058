import Synchronization
import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// The refused edits that a command has reported, and the exit code that follows from them.
final class RefusalBook: Sendable {
    private struct State {
        var reported = Set<String>()
        var isRefused = false
        var isUnauthorized = false
    }

    private let state = Mutex(State())

    /// Records an edit that is refused and kept.
    func record(_ edit: RefusedEdit) {
        state.withLock { state in
            if edit.error.code == .unauthorized { state.isUnauthorized = true } else { state.isRefused = true }
        }
    }

    /// - Returns: true if the object's refusal was not reported before.
    func markReported(_ key: String) -> Bool { state.withLock { $0.reported.insert(key).inserted } }

    /// A command that runs until it is interrupted ends with success.
    func forget() { state.withLock { $0 = State() } }

    /// nil: no edit is refused. An edit that is refused for good takes precedence over one that needs another token.
    var code: ExitCode? {
        state.withLock { $0.isRefused ? .refused : $0.isUnauthorized ? .unauthorized : nil }
    }
}

/// The state in which a command made an object equal to the given one.
struct Making: Sendable {
    /// The server has acknowledged exactly this object before.
    let isSame: Bool
    /// The object had edits before that the server has not acknowledged.
    let hadEdits: Bool
}

extension OpenBucket {
    /// How many refused edits one command names at most.
    static let refusalsShownMax = 20

    /// Makes the object equal to `object`, and returns whether the server has acknowledged that before.
    ///
    /// - Parameter sends: an equal edit that was refused is sent once more, since the server may accept it now.
    func make(_ key: String, _ object: JSONObject, sends: Bool = true) async throws(ClientError) -> Making {
        let hadEdits = try await bucket.info(key).hasUnconfirmedEdits
        guard try await bucket.get(key) == object else {
            try await bucket.set(key, to: object)
            return Making(isSame: false, hadEdits: hadEdits)
        }
        if hadEdits, sends { try await bucket.retryRefused(key) }
        return Making(isSame: !hadEdits, hadEdits: hadEdits)
    }

    /// The failure that says that an edit was refused and stays on this machine.
    func keptRefusal(_ key: String, _ what: String, _ number: Int?) -> Failure {
        _ = refusals.markReported(key)
        guard let number else {
            return Failure(
                "the token permits reading only, so '\(what)' is kept here and was not sent: log in with another token; "
                    + way(key), .unauthorized)
        }
        return Failure(
            "the server refused to \(what): \(Failure.meaning(of: number)). The edit is kept here: \(way(key)).",
            .refused)
    }

    private func way(_ key: String) -> String { "'thicket drop \(name) \(key)' drops it" }

    /// Names each refused edit that is kept on this machine and that the command has not named itself, one line each,
    /// on standard error.
    func reportRefused() async {
        let edits: [RefusedEdit]
        do throws(ClientError) { edits = try await bucket.refused() } catch {
            // A session that has ended has already given its reason.
            if error.code != .closed {
                Terminal.writeError("thicket: refused edits of \(name) cannot be listed: \(error)\n")
            }
            return
        }
        for edit in edits { refusals.record(edit) }
        let undelivered = edits.filter { refusals.markReported($0.key) }
        for edit in undelivered.prefix(Self.refusalsShownMax) {
            Terminal.writeError("thicket: \(Self.line(edit, in: name))\n")
        }
        guard undelivered.count > Self.refusalsShownMax else { return }
        let more = undelivered.count - Self.refusalsShownMax
        Terminal.writeError("thicket: \(name): \(more) more edits are refused; 'thicket status' lists them\n")
    }

    /// One line about an edit that is refused and kept, with the command that drops it.
    static func line(_ edit: RefusedEdit, in bucket: String) -> String {
        let (place, drop) = (
            "\(bucket)/\(edit.key)", "'thicket drop \(bucket) \(edit.key)' drops it"
        )
        guard edit.error.code != .unauthorized else {
            return "\(place): the edit kept here was not taken: \(edit.reason); another token sends it, \(drop)"
        }
        return "\(place): the server refused the edit kept here: \(edit.reason); \(drop), 'thicket put' replaces it"
    }
}
