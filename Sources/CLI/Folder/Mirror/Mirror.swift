import ThicketClient
import ThicketCommandLine
import ThicketPlatform
import ThicketProtocol

/// The clocks of a mirror.
struct MirrorClock: Sendable {
    /// Nanoseconds since 1970, on the clock of file time stamps.
    var fileTime: @Sendable () -> Int64 = { SystemClock.unixNanoseconds() }
    /// Milliseconds on a monotonic clock.
    var milliseconds: @Sendable () -> Int64 = { (SystemClock.monotonic() / 1_000_000) }
}

/// Keeps a folder and a bucket equal: compares both, asks `MirrorStep` for the next step, and does it.
actor Mirror {
    let directory: String
    private let open: OpenBucket
    var state: MirrorState
    /// The folder is compared once and the command ends: no step is deferred.
    private let isOnce: Bool
    private let limit: RemovalLimit
    /// Knows which files are complete; nil: not known.
    private let signal: (any FolderSignal)?
    private let clock: MirrorClock
    /// The stamp at which each file equalled its base; a file with the same stamp is not read again.
    private var stamps = [String: Files.Stamp]()
    /// When a file was first found missing, in milliseconds.
    var missing = [String: Int64]()
    /// Keys that an obstacle in the folder blocks: each round checks them again.
    var blocked = Set<String>()
    /// When an object was first found removed, in milliseconds.
    private var gone = [String: Int64]()
    /// The origin at the last full comparison, and the keys that have to wait.
    private var origin: String?
    private var waiting = Set<String>()
    private var isAllWaiting = false
    /// Problems that were reported, so that each is reported once.
    private var reported = [String: String]()
    private(set) var problems = 0
    /// What is printed once the server has acknowledged it.
    private var outbox = MirrorOutbox()
    /// Objects whose edits the server refused.
    private var refusedKeys = Set<String>()

    /// Milliseconds that a file must be missing before it counts as deleted: editors remove a file and write it again.
    private static let graceMilliseconds: Int64 = 700
    /// Nanoseconds that a file must be unchanged before it is read, unless it is known to be complete: it may be half
    /// written. This always applies to an empty file: some programs empty a file first and then open it again.
    private static let quietNanoseconds: Int64 = 150_000_000
    /// Most steps for one key in one round. More means that another program writes all the time; the next round
    /// continues.
    private static let stepsMax = 8

    init(
        directory: String, open: OpenBucket, state: MirrorState, isOnce: Bool, limit: RemovalLimit = .init(),
        signal: (any FolderSignal)? = nil, clock: MirrorClock = .init()
    ) {
        self.directory = directory
        self.open = open
        self.state = state
        self.isOnce = isOnce
        self.limit = limit
        self.signal = signal
        self.clock = clock
    }

    var fileCount: Int { state.keys.count }
    /// Files that equal their objects at the server.
    var sameCount: Int { state.keys.count { !refusedKeys.contains($0) } }

    // MARK: - Rounds

    /// Called before the bucket goes online: finds out whether the pushes that the last run began were completed.
    ///
    /// - Returns: whether the copy of the bucket was ever read as a whole.
    @discardableResult
    func resume() async throws(Failure) -> Bool {
        let place = try await place()
        (origin, state.origin) = (place.origin, place.origin)
        if place.isFirst, place.isRead { state.originOfOldBases = place.origin }
        if !place.isRead { try state.doubtOldBases() }
        for (key, begun) in state.begun {
            let object = try await object(key)
            if object == begun.after { try state.remember(begun.next, for: key) } else { state.forgetBegun(key) }
        }
        return place.isRead
    }

    private func place() async throws(Failure) -> BucketPlace {
        try await trying("cannot read \(open.name)") { () throws(ClientError) in try await open.bucket.place }
    }

    func markComplete() throws(Failure) { try state.markComplete() }

    /// Compares the folder and the objects named.
    ///
    /// - Parameter keys: objects that changed; nil: all.
    /// - Returns: how many steps were done, and after how many milliseconds the next comparison is due (nil: not before
    ///   a change).
    func round(_ keys: Set<String>?) async throws(Failure) -> (steps: Int, again: Int64?) {
        guard state.isThere else {
            throw Failure(
                "\(directory) is no longer the folder that was mirrored: it was moved, emptied or unmounted. Nothing was "
                    + "removed from the bucket.")
        }
        let scan = FolderScan(
            Files.names(in: directory), isFolder: { Files.isFolder(directory + "/" + $0) },
            preferred: { state[$0]?.file.name })
        for (name, reason) in scan.problems { report(name, reason) }
        let place = try await place()
        // The bucket may be another one that is being read: until it is complete, nothing can be compared.
        guard let now = place.origin else {
            if let keys { waiting.formUnion(keys) } else { isAllWaiting = true }
            return (0, nil)
        }
        let isAll = keys == nil || isAllWaiting || (origin ?? now) != now
        (origin, state.origin, isAllWaiting) = (now, now, false)
        var wanted = (keys ?? []).union(waiting)
        waiting = []
        if isAll { wanted.formUnion(try await bucketKeys() + state.keys) }
        wanted.formUnion(state.keys.filter { scan.files[$0] == nil })
        wanted.formUnion(blocked)
        for (key, file) in scan.files where isTouched(key, file) { wanted.insert(key) }
        try await checkRemovals(wanted, scan)
        var steps = 0
        var again: Int64?
        for key in wanted.sorted() {
            let (taken, pause) = try await reconcile(key, scan.files[key])
            steps += taken
            if let pause { again = min(again ?? pause, pause) }
        }
        return (steps, again)
    }

    private func bucketKeys() async throws(Failure) -> [String] {
        try await trying("cannot list \(open.name)") { () throws(ClientError) in try await open.bucket.keys() }
    }

    private func object(_ key: String) async throws(Failure) -> JSONObject? { try await look(key).object }

    private func look(_ key: String) async throws(Failure) -> ObjectLook {
        try await trying("cannot read \(open.name)/\(key)") { () throws(ClientError) in try await open.bucket.look(key)
        }
    }

    func path(_ name: String) -> String { directory + "/" + name }

    private func isTouched(_ key: String, _ file: FileName) -> Bool {
        guard let known = stamps[key], let base = state[key], base.file == file else {
            return true
        }
        return Files.stamp(path(file.name)) != known
    }

    /// Does steps for one key until none is left.
    private func reconcile(_ key: String, _ found: FileName?) async throws(Failure) -> (Int, Int64?) {
        blocked.remove(key)
        var name = found
        for count in 0..<Mirror.stepsMax {
            if name == nil, let known = state[key]?.file {
                switch missingFile(known) {
                case .gone: break
                case .there: name = known
                case .hidden(let reason):
                    hold(key, known.name, reason)
                    return (count, nil)
                }
            }
            if name == nil, let pause = grace(key) { return (count, pause) }
            if let name, isBeingWritten(name) { return (count, Mirror.quietNanoseconds / 1_000_000) }
            let stamp = name.flatMap { Files.stamp(path($0.name)) }
            let file = read(name)
            if name != nil, file == .absent {
                // The file has disappeared since the scan: the next round decides about all missing files together.
                return (count + (isOnce ? 1 : 0), grace(key))
            }
            let look = try await look(key)
            guard let now = look.place.origin else {
                waiting.insert(key)
                return (count, nil)
            }
            state.origin = now
            let step = step(key, file, look)
            if case .delete = step {
                // The mirror first receives everything that was removed meanwhile, so that the number of removals is
                // known.
                let pause = look.place.isReading ? nil : pause(&gone, key)
                if look.place.isReading || pause != nil {
                    waiting.insert(key)
                    return (count, pause)
                }
            }
            gone[key] = nil
            if case .nothing = step {
                markInSync(key, name, stamp)
                return (count, nil)
            }
            if case .hold(let place, let reason) = step {
                hold(key, place, reason)
                return (count, nil)
            }
            if let (place, reason) = obstacle(to: step) {
                hold(key, place, reason)
                return (count, nil)
            }
            do throws(PlaceProblem) { name = try await performInPlace(step, key, name) } catch {
                switch error {
                case .place(let place, let reason):
                    hold(key, place, reason)
                    return (count, nil)
                case .ends(let failure): throw failure
                }
            }
            // The next turn of this loop compares the present state.
            missing[key] = nil
        }
        return (Mirror.stepsMax, Mirror.graceMilliseconds)
    }

    /// The file equals its base: it is not read again while its stamp is unchanged. A very recent stamp proves nothing,
    /// since clocks of file systems have a coarse resolution.
    private func markInSync(_ key: String, _ name: FileName?, _ stamp: Files.Stamp?) {
        missing[key] = nil
        if let name { reported[name.name] = nil }
        let isOld = stamp.map { clock.fileTime() - $0.changed > Mirror.quietNanoseconds } ?? false
        stamps[key] = isOld && name != nil ? stamp : nil
    }

    /// Milliseconds to wait before a missing file counts as deleted; nil: it counts now.
    private func grace(_ key: String) -> Int64? {
        state[key] == nil ? nil : pause(&missing, key)
    }

    /// Milliseconds until a key has been in the set for long enough.
    private func pause(_ keys: inout [String: Int64], _ key: String) -> Int64? {
        guard !isOnce else { return nil }
        let now = clock.milliseconds()
        let since = keys[key] ?? now
        keys[key] = since
        let left = Mirror.graceMilliseconds - (now - since)
        return left > 0 ? left : nil
    }

    private func isBeingWritten(_ name: FileName) -> Bool {
        guard !isOnce, let stamp = Files.stamp(path(name.name)) else { return false }
        if stamp.size > 0, signal?.isWritten(name.name) ?? false { return false }
        // The clock of a file system may run a little ahead of ours; a file whose time is far from now counts as
        // unchanged.
        return (-Mirror.quietNanoseconds..<Mirror.quietNanoseconds).contains(clock.fileTime() - stamp.written)
            && state[name.key].map { Int64($0.bytes.count) != stamp.size } ?? true
    }

    private func read(_ name: FileName?) -> MirrorFile {
        guard let name else { return .absent }
        if let reason = Files.obstacle(path(name.name)) { return .unreadable(name, reason: reason) }
        switch Files.read(path(name.name), bytesMax: FolderLimits.fileBytesMax) {
        case .bytes(let bytes): return .present(name, bytes)
        case .absent: return .absent
        case .failed(let reason): return .unreadable(name, reason: reason)
        }
    }

    private func step(_ key: String, _ file: MirrorFile, _ look: ObjectLook) -> MirrorStep {
        MirrorStep(
            key: key, base: state[key], file: file, object: look.object, isRemoved: look.isRemoved,
            isDoubtful: state.isDoubtful(key))
    }

    // MARK: - Removals

    /// Checks, before any step is done, that not too much would be removed on either side.
    private func checkRemovals(_ wanted: Set<String>, _ scan: FolderScan) async throws(Failure) {
        let total = state.keys.count
        let missing = state.keys.filter { key in
            scan.files[key] == nil && state[key].map { missingFile($0.file) == .gone } ?? true
        }
        let isEmptied = missing.count == total
        // At most all missing files would be removed.
        if limit.stops(missing.count, of: total, isEmptied: isEmptied) {
            var count = 0
            for key in missing {
                if case .remove = step(key, .absent, try await look(key)) { count += 1 }
            }
            if limit.stops(count, of: total, isEmptied: isEmptied) {
                let what = isEmptied ? "The folder holds none of the mirrored files any more" : "Many files are missing"
                throw tooMany(
                    "\(what): \(count) of \(total) objects would be removed from \(open.name)", count,
                    "'thicket export \(open.name) \(directory)' brings the files back")
            }
        }
        let present = wanted.filter { state[$0] != nil && scan.files[$0] != nil }
        guard limit.stops(present.count, of: total) else { return }
        var count = 0
        for key in present {
            let look = try await look(key)
            guard look.object == nil, let name = scan.files[key] else { continue }
            if case .delete = step(key, read(name), look) { count += 1 }
        }
        guard limit.stops(count, of: total) else { return }
        throw tooMany(
            "Many objects were removed from \(open.name): \(count) of \(total) files would be removed from \(directory)",
            count, "'thicket import \(open.name) \(directory)' sends the objects again")
    }

    private func tooMany(_ what: String, _ count: Int, _ otherwise: String) -> Failure {
        Failure(
            "\(Screen.safe(what)). Nothing was removed. If that is meant, go on with --allow-removals \(count) (or 'all'); "
                + Screen.safe(otherwise))
    }

    // MARK: - Steps

    /// Does a step and returns the name of the file that exists afterwards. A step whose precondition does not hold any
    /// more does nothing.
    func perform(_ step: MirrorStep, _ key: String, _ name: FileName?) async throws(Failure) -> FileName? {
        switch step {
        case .nothing, .hold: return name
        case .remember(let base):
            try state.remember(base, for: key)
            return name
        case .push(let diff, let object, let base, let remark):
            try await push(diff, to: object, base, remark, key)
            return name
        case .remove(let object):
            try await remove(object, key)
            return nil
        case .write(let expected, let base, let remark):
            let done = try inFolder { () throws(Failure) in
                try Files.replace(
                    path(base.file.name), expecting: expected, base.bytes, bytesMax: FolderLimits.fileBytesMax,
                    followsLinks: true)
            }
            guard done == .done else { return exists(base.file) ? base.file : name }
            try state.remember(base, for: key)
            say(
                remark == .restoredFile
                    ? "received \(base.file.name) (deleted here, but changed in the bucket)"
                    : "received \(base.file.name)")
            return base.file
        case .delete(let file, let expected):
            let done = try inFolder { () throws(Failure) in
                try Files.remove(path(file.name), expecting: expected, bytesMax: FolderLimits.fileBytesMax)
            }
            guard done == .done else { return exists(file) ? file : nil }
            try state.remember(nil, for: key)
            say("removed \(file.name) from the folder")
            return nil
        case .setAside(let file):
            try inFolder { () throws(Failure) in try setAside(file) }
            try state.remember(nil, for: key)
            return nil
        }
    }

    private func exists(_ file: FileName) -> Bool { Files.stamp(path(file.name)) != nil }

    private func push(
        _ diff: ObjectDiff, to object: JSONObject?, _ base: MirrorBase, _ remark: MirrorRemark?, _ key: String
    ) async throws(Failure) {
        if case .merged? = remark, let object, let after = try? JSONDiff.apply(diff, to: object) {
            try state.begin(MirrorState.Begun(next: base, after: after), for: key)
        }
        let isReplaced = try await trying("cannot store \(open.name)/\(key)") { () throws(ClientError) in
            try await open.bucket.replace(key) { current, _ in current == object ? diff : nil }
        }
        guard isReplaced else { return }
        try state.remember(base, for: key, isDurable: true)
        switch remark {
        case .merged(let overridden)? where !overridden.isEmpty:
            say(
                "merged \(base.file.name): both sides changed \(overridden.joined(separator: ", ")); the file's counts, the "
                    + "other is in the history")
        case .merged?: say("merged \(base.file.name): both sides had changed it")
        case .sentAgain?:
            sends(base.file.name, key, " again (absent from a bucket that need not be the one mirrored before)")
        case .restoredObject?: sends(base.file.name, key, " (removed from the bucket, but changed here)")
        default: sends(base.file.name, key)
        }
    }

    private func remove(_ object: JSONObject, _ key: String) async throws(Failure) {
        let isDone = try await trying("cannot remove \(open.name)/\(key)") { () throws(ClientError) in
            // Another device may have changed the object since it was compared: then it stays, and comes back as a
            // file.
            try await open.bucket.remove(key) { $0 == object }
        }
        guard isDone else { return }
        let name = state[key]?.file.name ?? key
        try state.remember(nil, for: key)
        removes(name, key)
    }

    /// Renames a file out of the way; under its new name it becomes a separate object.
    private func setAside(_ file: FileName) throws(Failure) {
        let name = file.name
        let dot = name.lastIndex(of: ".").flatMap { $0 > name.startIndex ? $0 : nil } ?? name.endIndex
        for number in 1...10_000 {
            let other = "\(name[..<dot]).conflict-\(number)\(name[dot...])"
            let problem = Files.renameNew(path(name), path(other))
            if problem == 0 {
                say(
                    "\(name) and the object in the bucket have nothing in common: the file is now \(other), the object comes"
                )
                return
            }
            // EEXIST: try the next number. Not found: nothing to set aside.
            if problem == 2 { return }
            guard problem == 17 else {
                throw Failure("cannot rename \(path(name)): \(Files.reason(problem))")
            }
        }
    }

    // MARK: - Telling

    private func say(_ text: String) { Terminal.write(Screen.safe(text) + "\n") }

    func report(_ name: String, _ reason: String) {
        guard !same(reported[name] ?? "", reason) else { return }
        reported[name] = reason
        problems += 1
        Terminal.writeError("thicket: \(Screen.safe(name)) is left alone: \(reason)\n")
    }

    // MARK: - The server's answers

    private func sends(_ name: String, _ key: String, _ remark: String = "") {
        outbox.add(
            key, confirmed: "sent \(name)\(remark)", kept: "kept \(name)\(remark): it is sent when the server answers")
    }

    private func removes(_ name: String, _ key: String) {
        outbox.add(
            key, confirmed: "removed \(name) from the bucket",
            kept: "kept the removal of \(name): it is sent when the server answers")
    }

    /// Called before the bucket goes online: queues messages for what an earlier run left unacknowledged, and sends
    /// refused edits again, once per run, since the server's limits may have changed.
    func sendAgain() async throws(Failure) {
        if !isOnce { try await nameRefused() }
        try await reportBroughtBack()
        let what = "cannot read \(open.name)"
        for key in try await trying(what, { () throws(ClientError) in try await open.bucket.unconfirmedKeys() }) {
            let name = state[key]?.file.name ?? key
            if try await object(key) == nil { removes(name, key) } else { sends(name, key) }
        }
        try await trying(what) { () throws(ClientError) in
            for edit in try await open.bucket.refused() { try await open.bucket.retryRefused(edit.key) }
        }
    }

    /// Prints what the server has acknowledged by now, and what waits for a connection.
    func reportConfirmed() async throws(Failure) {
        try await reportBroughtBack()
        guard !outbox.isEmpty else { return }
        let (waiting, refused) = try await trying("cannot read \(open.name)") {
            () throws(ClientError) in
            (try await open.bucket.unconfirmedKeys(), try await open.bucket.refused())
        }
        let isOffline = await !open.isOnline
        let lines = outbox.report(
            waiting: Set(waiting), refused: Set(refused.map(\.key)), isOffline: isOffline)
        for line in lines { say(line) }
    }

    /// Edits that the library sends again by itself are reported like those of the mirror.
    private func reportBroughtBack() async throws(Failure) {
        let keys = try await trying("cannot read \(open.name)") { () throws(ClientError) in
            try await open.bucket.takeBroughtBack()
        }
        for key in keys { sends(state[key]?.file.name ?? key, key, " again: the server did not have it any more") }
    }

    /// Names the edits that the server refuses: the files stay unchanged, and no run counts them as equal.
    func nameRefused() async throws(Failure) {
        let edits = try await trying("cannot read \(open.name)") { () throws(ClientError) in
            try await open.bucket.refused()
        }
        refusedKeys = Set(edits.map(\.key))
        for edit in edits {
            open.refusals.record(edit)
            let name = state[edit.key]?.file.name ?? edit.key
            let reason = edit.error.number.map(Failure.meaning(of:)) ?? edit.reason
            report(
                name, "the server refused it: \(reason). It stays here as it is; when it is changed it is sent again")
        }
    }
}
