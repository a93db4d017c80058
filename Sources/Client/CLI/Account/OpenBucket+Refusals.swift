import Synchronization
import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// What a command has told of refused edits, and the exit code they ask for.
final class RefusalBook: Sendable {
    private struct State {
        var told = Set<String>()
        var isRefused = false
        var isUnauthorized = false
    }

    private let state = Mutex(State())

    /// Remembers an edit that is refused and kept.
    func note(_ edit: RefusedEdit) {
        state.withLock { state in
            if edit.error.code == .unauthorized { state.isUnauthorized = true } else { state.isRefused = true }
        }
    }

    /// - Returns: whether the object's refusal was not told before.
    func tell(_ key: String) -> Bool { state.withLock { $0.told.insert(key).inserted } }

    /// A command that runs until it is interrupted ends well.
    func forget() { state.withLock { $0 = State() } }

    /// nil: no edit is refused. One that is refused for good counts more than one that needs another token.
    var code: ExitCode? {
        state.withLock { $0.isRefused ? .refused : $0.isUnauthorized ? .unauthorized : nil }
    }
}

/// How a command made an object what was given.
struct Making: Sendable {
    /// The server has confirmed exactly this object before.
    let isSame: Bool
    /// There were edits before that the server has not confirmed.
    let hadEdits: Bool
}

extension OpenBucket {
    /// Refused edits that one command names.
    static let refusalsShownMax = 20

    /// Makes the object equal to `object`, and says whether the server has confirmed that before.
    ///
    /// - Parameter sends: an equal edit that was refused is sent once more: the server's answer of today counts.
    func make(_ key: String, _ object: JSONObject, sends: Bool = true) async throws(ClientError) -> Making {
        let hadEdits = try await bucket.info(key).hasUnconfirmedEdits
        guard try await bucket.get(key) == object else {
            try await bucket.set(key, to: object)
            return Making(isSame: false, hadEdits: hadEdits)
        }
        if hadEdits, sends { try await bucket.retryRefused(key) }
        return Making(isSame: !hadEdits, hadEdits: hadEdits)
    }

    /// How a command says that an edit was refused and stays here.
    func keptRefusal(_ key: String, _ what: String, _ number: Int?) -> Failure {
        _ = refusals.tell(key)
        guard let number else {
            return Failure(
                "the token permits reading only, so '\(what)' is kept here and was not sent: log in with another token; "
                    + way(key), .unauthorized)
        }
        return Failure(
            "the server refused to \(what): \(Failure.meaning(of: number)). The edit is kept here: \(way(key)).",
            .refused)
    }

    private func way(_ key: String) -> String { "'thicket drop \(name) \(key)' gives it up" }

    /// Names each refused edit that is kept here and that the command has not named itself, a line each on standard
    /// error.
    func tellRefused() async {
        let edits: [RefusedEdit]
        do throws(ClientError) { edits = try await bucket.refused() } catch {
            // A session that has ended has said why.
            if error.code != .closed {
                Terminal.writeError("thicket: refused edits of \(name) cannot be listed: \(error)\n")
            }
            return
        }
        for edit in edits { refusals.note(edit) }
        let untold = edits.filter { refusals.tell($0.key) }
        for edit in untold.prefix(Self.refusalsShownMax) {
            Terminal.writeError("thicket: \(Self.line(edit, in: name))\n")
        }
        guard untold.count > Self.refusalsShownMax else { return }
        let more = untold.count - Self.refusalsShownMax
        Terminal.writeError("thicket: \(name): \(more) more edits are refused; 'thicket status' lists them\n")
    }

    /// One line about an edit that is refused and kept, with the way out.
    static func line(_ edit: RefusedEdit, in bucket: String) -> String {
        let (place, drop) = (
            "\(bucket)/\(edit.key)", "'thicket drop \(bucket) \(edit.key)' gives it up"
        )
        guard edit.error.code != .unauthorized else {
            return "\(place): the edit kept here was not taken: \(edit.reason); another token sends it, \(drop)"
        }
        return "\(place): the server refused the edit kept here: \(edit.reason); \(drop), 'thicket put' replaces it"
    }
}
