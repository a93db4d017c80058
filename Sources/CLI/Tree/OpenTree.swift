import ThicketClient
import ThicketCommandLine
import ThicketTreesystem

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The tree of the profile's account, open for one command.
package struct OpenTree: Sendable {
    /// Where the copy of the tree is.
    package enum Place: Sendable {
        /// The profile's copy, with the changes that wait for the server. One command at a time uses it.
        case profile
        /// The copy of `watch`, which runs beside other commands; a second one uses memory.
        case watch
        /// The copy of a program that is built on the library, by its name. One command at a time uses it.
        case program(String)
    }

    /// Makes the tree of a session: a program that is built on the library passes its delegate.
    package typealias Opening = @Sendable (ClientSession) async throws(TreeError) -> Treesystem

    package let client: ClientSession
    package let tree: Treesystem
    let account: Account
    /// nil: the branch of a link, whose keys are not kept.
    let keys: KeyCall?

    /// Opens the copy and, unless `isOnline` is false, starts to connect.
    ///
    /// - Throws: `storeInUse` while another command uses the copy; `usage` or `notFound` without keys.
    package static func open(
        _ call: Call, isOnline: Bool, place: Place = .profile, by opening: Opening = plain
    ) async throws(Failure) -> OpenTree {
        let what = "the tree was not opened"
        let keys = try KeyCall(call, what)
        let account = keys.account
        let opened = try keys.open()
        let client = try await session(account, isOnline, place)
        do throws(ClientError) { try await client.useKeys(of: opened) } catch {
            await client.close()
            throw Failure(what, error)
        }
        do throws(TreeError) {
            return OpenTree(client: client, tree: try await opening(client), account: account, keys: keys)
        } catch {
            await client.close()
            throw Failure(what, tree: error)
        }
    }

    /// Machines that copy one folder at a time make its folders at once: they become one.
    package static let plain: Opening = { client throws(TreeError) in try await client.tree(nameConflicts: .adopt) }

    private static func session(
        _ account: Account, _ isOnline: Bool, _ place: Place
    ) async throws(Failure) -> ClientSession {
        guard let folder = account.folder, let keyFile = account.keyFile else {
            throw Failure("the tree needs a profile: 'thicket login' makes one", .usage)
        }
        try Files.makeFolder("\(folder)/tree")
        let key = try blocking("cannot use the local copies") { () throws(ClientError) in try keyFile.key() }
        let (isWatch, file) =
            switch place {
            case .profile: (false, "tree")
            case .watch: (true, "watch")
            case .program(let name): (false, name)
            }
        do throws(ClientError) {
            return try await account.session(
                store: .sealed("\(folder)/tree/\(file).db", key), isOnline: isOnline)
        } catch {
            guard error.code == .storeInUse else { throw Failure("the local copy of the tree cannot be used", error) }
            guard isWatch else {
                throw Failure(
                    "another '\(file == "tree" ? "thicket" : file)' command uses the local copy of the tree: wait until it has ended, or end it",
                    .storeInUse)
            }
        }
        return try await trying("cannot start") { () throws(ClientError) in
            try await account.session(store: .memory, isOnline: isOnline)
        }
    }

    /// Opens the tree, runs a command on it, and closes it. Ctrl-C and SIGTERM end the command; changes that wait stay.
    ///
    /// - Parameters:
    ///   - isOnline: false for `--offline`.
    ///   - isAboutQueue: the command itself reports changes that wait for the user.
    package static func run<Value: Sendable>(
        _ call: Call, isOnline: Bool, isAboutQueue: Bool = false, place: Place = .profile, by opening: Opening = plain,
        _ body: @escaping @Sendable (OpenTree) async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let open = try await open(call, isOnline: isOnline, place: place, by: opening)
        let conflicts = ConflictReports()
        let follower = conflicts.follow(await open.tree.events, in: open.tree)
        let rotations = RotationReports()
        let people = try? await open.client.people()
        var listener: Task<Void, Never>?
        if let people { listener = rotations.follow(await people.events) }
        let result = await Self.interruptible { () throws(Failure) in try await body(open) }
        let refusal = isAboutQueue ? nil : await open.reportRefused()
        let waiting = await open.waitingCount
        // The events end with the tree, so that all are read: a conflict of the last moment is reported too.
        let contacts = (try? await people?.contacts())?.map(\.contact) ?? []
        await open.close()
        await follower.value
        await listener?.value
        conflicts.report()
        rotations.report(contacts)
        do throws(Failure) {
            let value = try result.get()
            if let refusal { throw Failure("", refusal) }
            return value
        } catch {
            guard error.isInterruption else {
                if error.code == .failure, let refusal { throw Failure(error.text, refusal) }
                throw error
            }
            let kept =
                waiting == 0 ? "" : "; \(Counts.changes(waiting)) here and sent with the next 'thicket tree' command"
            throw Failure("interrupted\(kept)")
        }
    }

    /// Runs a body until it returns, or the user ends the command.
    static func interruptible<Value: Sendable>(
        _ body: @escaping @Sendable () async throws(Failure) -> Value
    ) async -> Result<Value, Failure> {
        let interrupts = Interrupts.stream()
        defer { Interrupts.release() }
        return await withTaskGroup(of: Result<Value, Failure>?.self) { group in
            group.addTask {
                do throws(Failure) { return .success(try await body()) } catch { return .failure(error) }
            }
            group.addTask {
                for await _ in interrupts { return .failure(.interrupted) }
                return nil
            }
            var outcome: Result<Value, Failure>?
            for await result in group {
                guard let result, outcome == nil else { continue }
                outcome = result
                group.cancelAll()
                // The thread that waits for a signal would keep its task alive.
                Interrupts.release()
            }
            return outcome ?? .failure(.interrupted)
        }
    }

    /// Ends the session; changes that were not confirmed stay in the copy.
    package func close() async {
        // A check of the own entries that was begun is made to its end, or the next command would begin it again.
        await (try? client.people())?.finishStartCheck(within: AlarmReports.checkTimeMax)
        keys?.keepNewer(client.account)
        await client.close()
    }

    // MARK: - Changes that wait

    /// How many changes wait in the copy; 0 if it cannot be read.
    var waitingCount: Int {
        get async { (try? await tree.queue.count) ?? 0 }
    }

    /// Most changes that one command names.
    static let refusalsShownMax = 20

    /// Names the changes that wait for the user, one line each.
    ///
    /// - Parameter pointer: the pointer node of the branch that this is; nil: the own tree.
    /// - Returns: the exit code that follows from them; nil without any.
    func reportRefused(in pointer: TreePath? = nil) async -> ExitCode? {
        guard let queue = try? await tree.queue else { return nil }
        let refused = queue.filter(\.needsApp)
        let place = pointer.map { " --in \(TreeText.named($0))" } ?? ""
        for operation in refused.prefix(Self.refusalsShownMax) {
            let path = await QueueText.place(of: operation, in: tree)
            Terminal.writeError(
                "thicket: \(path): \(QueueText.state(operation.state)); 'thicket tree queue\(place)' shows what waits\n"
            )
        }
        if refused.count > Self.refusalsShownMax {
            Terminal.writeError("thicket: \(refused.count - Self.refusalsShownMax) more changes wait for you\n")
        }
        return refused.isEmpty ? nil : .refused
    }
}

/// Numbers with their nouns.
enum Counts {
    static func changes(_ count: Int) -> String { count == 1 ? "1 change is kept" : "\(count) changes are kept" }
    static func files(_ count: Int) -> String { count == 1 ? "1 file" : "\(count) files" }
    static func nodes(_ count: Int) -> String { count == 1 ? "1 node" : "\(count) nodes" }
}
