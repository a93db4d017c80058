import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// `thicket import`: reads the files of a folder into a bucket.
enum ImportCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, folder) = (call.argument("BUCKET"), call.argument("DIR"))
        guard Files.isFolder(folder) else { throw Failure("\(folder) is not a folder", .notFound) }
        let scan = FolderScan(Files.names(in: folder), isFolder: { Files.isFolder(folder + "/" + $0) })
        let open = try await OpenBucket.open(try Account(call), bucket: name, store: .profile)
        try await open.ready()
        var problems = scan.problems
        var changed = [(file: FileName, hadEdits: Bool)]()
        var count = 0
        for file in scan.sorted {
            switch try await importFile(file, folder, open) {
            case .failure(let problem): problems.append((file.name, problem.text))
            case .success(let making):
                count += 1
                if !making.isSame { changed.append((file, making.hadEdits)) }
            }
        }
        let (refused, code): (Int, ExitCode) = try await confirm(changed, open, &problems)
        await open.close()
        let files = count == 1 ? "1 file" : "\(count) files"
        Terminal.write(
            "\(name): \(files) read from \(folder), \(changed.count - refused) new or different, "
                + "\(count - changed.count) as they were\n")
        try Folders.report(problems, code)
    }

    /// Makes the object equal to the file's content.
    private static func importFile(
        _ file: FileName, _ folder: String, _ open: OpenBucket
    ) async throws(Failure) -> Result<Making, FileContent.Problem> {
        if let reason = Files.obstacle(folder + "/" + file.name) { return .failure(FileContent.Problem(text: reason)) }
        let bytes: [UInt8]
        switch Files.read(folder + "/" + file.name, bytesMax: FolderLimits.fileBytesMax) {
        case .bytes(let found): bytes = found
        case .absent: return .failure(FileContent.Problem(text: "it does not exist any more"))
        case .failed(let reason): return .failure(FileContent.Problem(text: reason))
        }
        let existing = try await trying("cannot read \(open.name)/\(file.key)") { () throws(ClientError) in
            try await open.bucket.get(file.key)
        }
        let object: JSONObject
        do throws(FileContent.Problem) {
            object = try FileContent.object(bytes, kind: file.kind, existing: existing)
        } catch { return .failure(error) }
        return .success(
            try await trying("cannot import \(file.name)") { () throws(ClientError) in
                try await open.make(file.key, object)
            })
    }

    /// Waits for the server; files that it refuses become problems.
    ///
    /// - Returns: how many those are, and the exit code where files are left out: a refusal takes precedence over a
    ///   read-only token, and that over a file that cannot be read.
    private static func confirm(
        _ files: [(file: FileName, hadEdits: Bool)], _ open: OpenBucket,
        _ problems: inout [(name: String, reason: String)]
    ) async throws(Failure) -> (count: Int, code: ExitCode) {
        var (count, code): (Int, ExitCode) = (0, .failure)
        for (file, hadEdits) in files {
            do throws(Failure) {
                try await open.confirm(file.key, "import \(file.name)", hadEdits: hadEdits)
            } catch {
                // A login that has ended is not an answer about one file.
                let isReadOnly = error.code == .unauthorized ? await open.isOnline : false
                guard error.code == .refused || isReadOnly else { throw error }
                problems.append((file.name, error.text))
                count += 1
                if code != .refused { code = error.code }
            }
        }
        return (count, code)
    }
}

/// `thicket export`: writes the objects of a bucket to files of a folder.
enum ExportCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, folder) = (call.argument("BUCKET"), call.argument("DIR"))
        try Files.makeFolder(folder, mode: 0o755)
        let isOffline = call.flag("offline")
        let open = try await OpenBucket.open(
            try Account(call), bucket: name, store: isOffline ? .profileOnly : .profile, isOnline: !isOffline)
        if !isOffline { try await open.ready(offline: "the copy kept here is written") }
        let keys = try await trying("cannot list \(name)") { () throws(ClientError) in
            try await open.bucket.keys()
        }
        var bar = ProgressBar("exporting", total: keys.count)
        var problems = [(name: String, reason: String)]()
        var (written, same) = (0, 0)
        var listed = Set(Files.names(in: folder).map { Array($0.utf8) })
        for key in keys {
            bar.advance()
            let object = try await trying("cannot read \(name)/\(key)") { () throws(ClientError) in
                try await open.bucket.get(key)
            }
            guard let object else { continue }
            guard let file = try? FileName(key: key, kind: FileContent.kind(of: object)),
                let bytes = FileContent.bytes(object, kind: file.kind)
            else {
                problems.append((key, FileName.Problem.keyTooLong.text))
                continue
            }
            if let other = alias(of: file.name, in: folder, &listed) {
                problems.append((file.name, "this folder does not distinguish its name from \(other)"))
                continue
            }
            switch write(bytes, folder + "/" + file.name, isForced: call.flag("force")) {
            case .written: written += 1
            case .same: same += 1
            case .kept: problems.append((file.name, "a different file of this name exists; --force replaces it"))
            case .blocked(let reason): problems.append((file.name, reason))
            }
        }
        if !keys.isEmpty { bar.finish() }
        await open.close()
        let objects = keys.count == 1 ? "1 object" : "\(keys.count) objects"
        Terminal.write("\(name): \(objects); files in \(folder): \(written) written, \(same) the same already\n")
        try Folders.report(problems, .failure)
    }

    private enum Outcome {
        case written, same, kept
        case blocked(String)
    }

    /// The file that would be overwritten because the folder does not distinguish the two names.
    ///
    /// - Parameter listed: names that are known to be listed as they are.
    private static func alias(of name: String, in folder: String, _ listed: inout Set<[UInt8]>) -> String? {
        guard Files.stamp(folder + "/" + name) != nil, listed.insert(Array(name.utf8)).inserted else { return nil }
        return FolderScan.alias(of: name, among: Files.names(in: folder))
    }

    /// An obstacle to one file does not stop the others.
    private static func write(_ bytes: [UInt8], _ path: String, isForced: Bool) -> Outcome {
        if let reason = Files.obstacle(path) { return .blocked(reason) }
        do throws(Failure) { return try replace(path, bytes, isForced: isForced) } catch { return .blocked(error.text) }
    }

    private static func replace(_ path: String, _ bytes: [UInt8], isForced: Bool) throws(Failure) -> Outcome {
        switch Files.read(path, bytesMax: FolderLimits.fileBytesMax) {
        case .bytes(bytes): return .same
        case .absent:
            let outcome = try Files.replace(
                path, expecting: nil, bytes, bytesMax: FolderLimits.fileBytesMax, followsLinks: true)
            return outcome == .done ? .written : .kept
        case .failed(let reason) where !isForced:
            let advice = Files.stamp(path) == nil ? "" : "; --force replaces it"
            return .blocked("the existing file cannot be read: \(reason)\(advice)")
        case .bytes where !isForced: return .kept
        case .bytes, .failed:
            try Files.replace(path, bytes, mode: Files.rights(path) ?? 0o644, followsLinks: true)
            return .written
        }
    }
}

enum Folders {
    /// Names every file that was left out; ends the command with a code when any was.
    static func report(_ problems: [(name: String, reason: String)], _ code: ExitCode) throws(Failure) {
        guard !problems.isEmpty else { return }
        let lines = problems.map { "\(Screen.safe($0.name)): \($0.reason)" }
        throw Failure("left out:\n  " + lines.joined(separator: "\n  "), code)
    }
}
