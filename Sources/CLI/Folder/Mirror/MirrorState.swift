import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// What a mirror remembers in its folder, so that it recognises changes made while it was not running.
///
/// ```
/// DIR/.thicket/mirror.json    the bucket and the account
/// DIR/.thicket/base/kKEY      the last common state of a file and its object; hHASH where KEY is too long for that
/// DIR/.thicket/bucket.db      the mirror's copy of the bucket, with unsent edits
/// ```
struct MirrorState {
    let path: String
    private var bases = [String: MirrorBase]()
    /// Pushes that had begun when the last run was stopped.
    private(set) var begun = [String: Begun]()
    /// The whole bucket was read once: from then on a missing file is a deleted one.
    private(set) var isComplete: Bool
    private let identity: JSONObject
    /// The origin of the bucket (`BucketPlace.origin`) at which each base was true.
    private var origins = [String: String]()
    /// The origin of the present comparison, stored with new bases; nil: not known.
    var origin: String?
    /// The origin of bases from before origins were stored; nil: not known.
    var originOfOldBases: String?
    /// A merge that is being pushed, and the resulting object, which shows whether the push was completed.
    struct Begun: Equatable {
        let next: MirrorBase
        let after: JSONObject
    }

    static func folder(in directory: String) -> String { directory + "/.thicket" }
    var storePath: String { path + "/bucket.db" }

    /// - Throws: `usage` when the folder mirrors another bucket.
    init(directory: String, server: String, app: String, bucket: String) throws(Failure) {
        path = MirrorState.folder(in: directory)
        identity = ["server": .string(server), "app": .string(app), "bucket": .string(bucket)]
        try Files.makeFolder(path)
        try Files.makeFolder(path + "/base")
        isComplete = false
        switch Files.read(path + "/mirror.json", bytesMax: 1 << 20) {
        case .absent: try saveIdentity()
        case .failed(let reason): throw Failure("\(path)/mirror.json cannot be read: \(reason)")
        case .bytes(let bytes): try check(bytes, directory)
        }
        for name in Files.names(in: path + "/base") {
            if name.hasPrefix("k") { try load(name, key: String(name.dropFirst())) }
            if name.hasPrefix("h") { try load(name, key: nil) }
        }
    }

    /// The state of a folder that is already mirrored.
    static func existing(
        directory: String, server: String, app: String, bucket: String
    ) throws(Failure) -> MirrorState {
        guard Files.stamp(folder(in: directory) + "/mirror.json") != nil else {
            throw Failure("\(directory) mirrors no bucket", .notFound)
        }
        return try MirrorState(directory: directory, server: server, app: app, bucket: bucket)
    }

    private mutating func check(_ bytes: [UInt8], _ directory: String) throws(Failure) {
        guard var known = (try? JSONValue(parsing: bytes))?.objectValue else {
            throw Failure(
                "\(path)/mirror.json is damaged. Removing the folder \(path) makes the mirror start from the "
                    + "beginning: nothing but its memory is lost")
        }
        isComplete = known.remove("complete")?.boolValue ?? false
        guard known == identity else {
            let other = known["bucket"]?.stringValue ?? "another bucket"
            let server = known["server"]?.stringValue ?? "another server"
            throw Failure(
                "\(directory) mirrors the bucket \(other) of \(server) already. Another folder can mirror this one; or "
                    + "remove \(path) to make this folder forget", .usage)
        }
    }

    private func saveIdentity() throws(Failure) {
        var object = identity
        object["complete"] = .bool(isComplete)
        try Files.replace(path + "/mirror.json", Pretty.bytes(.object(object)), mode: 0o600)
    }

    /// Whether the folder is still the one that was opened.
    var isThere: Bool { Files.stamp(path + "/mirror.json") != nil }

    mutating func markComplete() throws(Failure) {
        guard !isComplete else { return }
        isComplete = true
        try saveIdentity()
    }

    // MARK: - Bases

    /// The base may be a state that the bucket never had: the copy is of another bucket, or has been in sync with
    /// another one since. Then a difference from the base is not newer, and an absent object was not removed.
    func isDoubtful(_ key: String) -> Bool {
        guard bases[key] != nil, let origin else { return false }
        return origins[key] ?? originOfOldBases != origin
    }

    /// The copy of the bucket is younger than the bases: none of them counts as a state of the bucket.
    mutating func doubtOldBases() throws(Failure) {
        for (key, base) in bases where origins[key] == nil {
            origins[key] = ""
            try save(["base": base.value], key, isDurable: false)
        }
    }

    var keys: [String] { Array(bases.keys) }
    subscript(key: String) -> MirrorBase? { bases[key] }

    private func file(_ key: String) -> String { path + "/base/" + Self.name(key) }

    /// The name of a base's file.
    private static func name(_ key: String) -> String {
        guard key.utf8.count >= FolderLimits.nameBytesMax else { return "k" + key }
        return "h" + Hex.encode(Hash.sha256(Array(key.utf8)))
    }

    /// - Parameter known: nil: the base contains its key.
    private mutating func load(_ name: String, key known: String?) throws(Failure) {
        let place = path + "/base/" + name
        guard case .bytes(let bytes) = Files.read(place, bytesMax: 4 * FolderLimits.fileBytesMax),
            let value = try? JSONValue(parsing: bytes), let record = value["base"],
            let key = known ?? record["name"]?.stringValue.flatMap({ try? FileName(file: $0) })?.key,
            same(Self.name(key), name)
        else {
            // Without a base, file and object are compared: equal ones are kept, others are set aside. Nothing is lost.
            return try Files.removeTree(place)
        }
        bases[key] = MirrorBase(record, key: key)
        origins[key] = value["origin"]?.stringValue
        guard let begun: JSONValue = value["begun"], let after = begun["after"]?.objectValue,
            let next = begun["next"].flatMap({ MirrorBase($0, key: key) })
        else { return }
        self.begun[key] = Begun(next: next, after: after)
    }

    /// Remembers the common state of file and bucket; nil: neither has the key.
    ///
    /// - Parameter isDurable: survives a power loss. Needed for a push, which might be merged twice otherwise; every
    ///   other state is found again by comparing file and object.
    mutating func remember(_ base: MirrorBase?, for key: String, isDurable: Bool = false) throws(Failure) {
        begun[key] = nil
        bases[key] = base
        origins[key] = base == nil ? nil : origin
        guard let base else { return try Files.removeTree(file(key)) }
        try save(["base": base.value], key, isDurable: isDurable)
    }

    /// Records that a merge is about to be pushed. A second push would duplicate the user's words in texts.
    func begin(_ begun: Begun, for key: String) throws(Failure) {
        guard let base: MirrorBase = bases[key] else { return }
        let push: JSONObject = ["next": begun.next.value, "after": .object(begun.after)]
        try save(["base": base.value, "begun": .object(push)], key, isDurable: true)
    }

    private func save(_ record: JSONObject, _ key: String, isDurable: Bool) throws(Failure) {
        var record = record
        if let origin = origins[key] { record["origin"] = .string(origin) }
        try Files.replace(file(key), JSONValue.object(record).serialized(), mode: 0o600, isDurable: isDurable)
    }

    /// Forgets a push that was begun and not completed.
    mutating func forgetBegun(_ key: String) { begun[key] = nil }
}
