internal import Synchronization
import ThicketProtocol

/// A part of a session that another library runs beside the buckets. It ends with the session.
package protocol SessionPart: AnyObject, Sendable {
    func close() async
}

/// The parts of a session. One that has a reference to its session is not kept alive here.
package final class SessionParts: Sendable {
    private struct Weak {
        weak var part: (any SessionPart)?
    }

    private struct State {
        var parts = [String: Weak]()
        /// Parts that have no reference to the session.
        var owned = [any SessionPart]()
        var isClosed = false
    }

    private let state = Mutex(State())

    init() {}

    /// The part with this name, which is made when there is none.
    ///
    /// - Parameter isOwned: kept alive until the session ends: it must have no reference to the session.
    /// - Throws: `closed` after the session's end; what `make` throws.
    package func part<Part: SessionPart>(
        _ name: String, isOwned: Bool = false, make: () throws(ClientError) -> Part
    ) throws(ClientError) -> Part {
        let outcome = state.withLock { state -> Result<Part, ClientError> in
            if state.isClosed { return .failure(ClientError(.closed, "the session is closed")) }
            if let part = state.parts[name]?.part as? Part { return .success(part) }
            do throws(ClientError) {
                let made = try make()
                state.parts[name] = Weak(part: made)
                if isOwned { state.owned.append(made) }
                return .success(made)
            } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    /// Whether the session has ended.
    package var isClosed: Bool { state.withLock(\.isClosed) }

    /// Ends all parts; no further one is made.
    func close() async {
        let parts = state.withLock { state in
            defer { (state.parts, state.owned, state.isClosed) = ([:], [], true) }
            return state.parts.values.compactMap(\.part)
        }
        for part in parts { await part.close() }
    }
}

/// Where a session keeps its local copy, and how it connects.
package struct SessionPlace: Sendable {
    /// The place of the local copy.
    package let store: StoreLocation
    /// The session's options.
    package let options: SessionOptions
    private let endpoint: Endpoint

    init(endpoint: Endpoint, store: StoreLocation, options: SessionOptions) {
        (self.endpoint, self.store, self.options) = (endpoint, store, options)
    }

    /// Another connection to the server, for an app.
    package func makeTransport(_ app: AppID) -> any Transport {
        // Linux only: the transport over libcurl. On Apple platforms another class implements the same protocol.
        CurlWebSocketTransport(
            endpoint: endpoint, target: "/sock/1/\(app.text)/websocket", options: options.transportOptions)
    }
}

extension ClientSession {
    /// Where the session keeps its local copy, and how it connects.
    package var sessionPlace: SessionPlace { place }

    /// The session's current token, with its number.
    package var numberedToken: (text: String, number: Int) {
        get async {
            let token = await keeper.current
            return (token.text, token.number)
        }
    }

    /// Options for another connection of the user.
    ///
    /// - Throws: `invalidName`, `invalidOptions`.
    package func syncOptions() async throws(ClientError) -> SyncOptions {
        let token = await numberedToken
        var sync = try place.options.syncOptions(app: calls.app, token: token.text)
        (sync.tokenNumber, sync.renewsToken) = (token.number, true)
        if case .partner = user { sync.deviceID = deviceId }
        return sync
    }

    /// A token in place of the one with this number, which the server has refused; one renewal for all connections.
    ///
    /// - Throws: `unauthorized` when the user is signed out; `deadline`, or the source's error.
    package func token(after number: Int) async throws(ClientError) -> (text: String, number: Int) {
        let token = try await keeper.token(after: number)
        return (token.text, token.number)
    }

    /// Reports what becomes of the token to another connection of the user.
    package func followToken(_ follower: @escaping @Sendable (TokenFate) -> Void) async {
        await keeper.follow(follower)
    }

    /// Reports that the server accepted the token of this number.
    package func tokenWorked(_ number: Int) async { await keeper.worked(number) }
}
