import ThicketClient
import ThicketCrypto
import ThicketProtocol

/// A user's encrypted notes, from login to logout.
///
/// Nothing of them is ever on a disk: the copy of the bucket is in memory, keys and texts are in `SecureBytes`. `end`
/// (logout, going to the background, lock) drops all of it and waits until it is overwritten; every later call throws
/// `ended`. Texts that a caller still holds are the caller's to release.
public actor Vault {
    /// The bucket of notes in each account.
    public static let bucket = "onions"
    /// Longest wait for the server by default.
    public static let patience: Duration = .seconds(30)

    /// What the server reported about the user's notes at the login.
    public nonisolated let standing: OnionStanding
    /// The account's id.
    public nonisolated let user: String
    let session: ClientSession
    let notes: Bucket
    let workers: NoteWorkers
    private let patience: Duration
    /// The login belongs to this vault, and ends with it.
    private let endsLogin: Bool
    private let clock: any SessionClock
    private var keys: NoteKeys?
    /// The texts that were opened, with the sealed note they came from.
    private var opened = [String: Opened]()

    private struct Opened {
        let note: StoredNote
        var texts: [NoteField: SecureBytes]
    }

    /// Reads the notes of a session whose copy is in memory.
    ///
    /// - Parameter endsLogin: whether the end of the vault also ends the session's login; otherwise the login stays
    ///   valid, and only the session is closed.
    /// - Throws: `client` when the server does not answer in time. The session is closed then.
    public init(
        _ session: ClientSession, keys: NoteKeys, endsLogin: Bool = true, patience: Duration = Vault.patience
    ) async throws(OnionError) {
        try await self.init(
            session, keys: keys, endsLogin: endsLogin, patience: patience, clock: SystemSessionClock(),
            workers: NoteWorkers())
    }

    init(
        _ session: ClientSession, keys: NoteKeys, endsLogin: Bool = true, patience: Duration, clock: any SessionClock,
        workers: NoteWorkers
    ) async throws(OnionError) {
        (self.session, self.keys, self.patience, self.clock) = (session, keys, patience, clock)
        self.endsLogin = endsLogin
        (self.workers, user) = (workers, keys.user)
        do throws(ClientError) {
            notes = try await session.bucket(Self.bucket)
            try await notes.waitUntilSynced(timeout: patience)
            standing = try await Self.standing(session)
        } catch {
            await session.close()
            throw .client(error)
        }
    }

    /// An app that is not a notes app reports nothing: then the default limits apply.
    private static func standing(_ session: ClientSession) async throws(ClientError) -> OnionStanding {
        // For partners' users the server counts the notes, and reports nothing beforehand.
        if case .partner = session.user { return OnionStanding(notesMax: nil) }
        let answer: JSONObject
        do throws(ClientError) { answer = try await session.look("auth/notes") } catch {
            guard error.number == 403 || error.number == 404 else { throw error }
            return OnionStanding()
        }
        return OnionStanding(
            isPro: answer["Pro"]?.boolValue ?? false, receipt: answer["ProReceipt"]?.stringValue,
            notesMax: answer["notesMax"]?.intValue.map { Int(clamping: $0) })
    }

    // MARK: - Reading

    /// The notes, ascending by creation. None is opened.
    public func list() async throws(OnionError) -> [Onion] {
        try await stored().map(Onion.init).sorted(by: Onion.precedes)
    }

    /// The titles, each as soon as it is open: a few at a time, on dedicated threads, oldest note first.
    ///
    /// A note that needs a very large number of rounds yields `needsConsent`, one that does not open `unreadable`.
    public func titles() async throws(OnionError) -> AsyncStream<OnionTitle> {
        let onions = try await list()
        let (stream, continuation) = AsyncStream.makeStream(of: OnionTitle.self)
        let task: Task<Void, Never> = Task { [workers] in
            await withTaskGroup { group in
                var waiting = onions[...]
                for _ in 0..<workers.count { Self.add(&waiting, self, to: &group) }
                for await title in group {
                    continuation.yield(title)
                    Self.add(&waiting, self, to: &group)
                }
            }
            continuation.finish()
        }
        continuation.onTermination = { _ in task.cancel() }
        return stream
    }

    private static func add(
        _ waiting: inout ArraySlice<Onion>, _ vault: Vault, to group: inout TaskGroup<OnionTitle>
    ) {
        guard !Task.isCancelled, let onion = waiting.popFirst() else { return }
        group.addTask { await vault.title(of: onion) }
    }

    private func title(of onion: Onion) async -> OnionTitle {
        do throws(OnionError) {
            return OnionTitle(onion: onion, title: .success(try await text(.title, of: onion.id, consents: false)))
        } catch {
            return OnionTitle(onion: onion, title: .failure(error))
        }
    }

    /// Title and text of a note.
    /// - Parameter consents: the user has agreed to a large number of rounds.
    /// - Throws: `notFound`, `unreadable`, `needsConsent`, `ended`.
    public func read(_ id: String, consents: Bool = false) async throws(OnionError) -> NoteText {
        // Both texts are needed: two threads at once.
        async let info = result(.info, of: id, consents: consents)
        let title = try await text(.title, of: id, consents: consents)
        return NoteText(title: title, info: try await info.get())
    }

    private func result(
        _ field: NoteField, of id: String, consents: Bool
    ) async -> Result<SecureBytes, OnionError> {
        do throws(OnionError) { return .success(try await text(field, of: id, consents: consents)) } catch {
            return .failure(error)
        }
    }

    func text(_ field: NoteField, of id: String, consents: Bool) async throws(OnionError) -> SecureBytes {
        let note = try await note(id)
        guard let keys else { throw .ended }
        if let known = opened[id], known.note.isSame(as: note), let text = known.texts[field] {
            return text
        }
        let result: Result<SecureBytes, OnionError> = await workers.run {
            do throws(OnionError) { return .success(try keys.open(field, of: note, consents: consents)) } catch {
                return .failure(error)
            }
        }
        guard self.keys != nil else { throw .ended }
        let text = try result.get()
        remember(text, field, of: note)
        return text
    }

    private func remember(_ text: SecureBytes, _ field: NoteField, of note: StoredNote) {
        var known = opened[note.id] ?? Opened(note: note, texts: [:])
        if !known.note.isSame(as: note) { known = Opened(note: note, texts: [:]) }
        known.texts[field] = text
        opened[note.id] = known
    }

    func note(_ id: String) async throws(OnionError) -> StoredNote {
        guard keys != nil else { throw .ended }
        let object = try await asking { () throws(ClientError) in try await notes.get(id) }
        guard let object else { throw .notFound }
        return StoredNote(id: id, object: object)
    }

    func stored() async throws(OnionError) -> [StoredNote] {
        guard keys != nil else { throw .ended }
        return try await asking { () throws(ClientError) in
            var found = [StoredNote]()
            for id in try await notes.keys() {
                guard let object = try await notes.get(id) else { continue }
                found.append(StoredNote(id: id, object: object))
            }
            return found
        }
    }

    /// Signals that a note has changed, on this device or another; ends with the session. Several changes are merged
    /// for a slow reader.
    public func changes() async -> AsyncStream<Void> {
        let events = await notes.changes
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let task: Task<Void, Never> = Task {
            for await _ in events { continuation.yield() }
            continuation.finish()
        }
        continuation.onTermination = { _ in task.cancel() }
        return stream
    }

    // MARK: - Ending

    /// Whether the session has ended.
    public var isEnded: Bool { keys == nil }

    /// Ends the vault: keys and texts are overwritten before this returns, then the server is notified and the
    /// connection closed.
    /// - Returns: whether the server has acknowledged the end; if not, the token stays valid until it is revoked.
    @discardableResult
    public func end() async -> Bool {
        guard await wipe() else { return true }
        let isAcknowledged = endsLogin ? await session.signOut() : true
        await session.close()
        return isAcknowledged
    }

    /// - Returns: false when it was done before.
    func wipe() async -> Bool {
        guard keys != nil else { return false }
        keys = nil
        opened.removeAll()
        await workers.settle()
        return true
    }

    // MARK: - For the other files of this type

    func theKeys() throws(OnionError) -> NoteKeys {
        guard let keys else { throw .ended }
        return keys
    }

    func forget(_ id: String) { opened[id] = nil }

    /// Milliseconds since 1970.
    var now: Int64 { Int64(clock.unixSeconds() * 1_000) }
    var timeout: Duration { patience }

    func asking<Value>(
        _ body: () async throws(ClientError) -> Value
    ) async throws(OnionError) -> Value {
        do throws(ClientError) { return try await body() } catch {
            throw error.code == .closed ? .ended : .client(error)
        }
    }
}
