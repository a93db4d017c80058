import ThicketCommandLine
import ThicketCrypto
import ThicketPlatform
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Copies the contents of single nodes to files.
package struct NodeDownload: Sendable {
    let open: OpenTree
    /// Only what is on this machine.
    let isOffline: Bool
    /// Existing files are replaced.
    let isForced: Bool

    /// What became of a file.
    enum Outcome: Sendable {
        case written
        /// A file with this content exists.
        case same
    }

    /// How long an interrupted download stays, so that a repeated call goes on with it.
    private static let keptMilliseconds: Int64 = 7 * 86_400_000

    /// Larger contents are streamed where that is possible: they would take a good part of the cache.
    private static let streamedBytesMin: UInt64 = 4 << 20

    // MARK: - The content

    /// Where the bytes of a content are.
    enum Source: Sendable {
        case bytes([UInt8])
        /// In a sealed file, which exists while the value does.
        ///
        /// - Parameter isPassing: the file was downloaded for this call.
        case file(RetainedFile, isPassing: Bool = false)
        /// At the server; nothing of it is kept here.
        case stream(BlobStream)

        /// Hands the data to `body` in pieces of at most a chunk.
        func read(_ body: ([UInt8]) throws(Failure) -> Void) async throws(Failure) {
            switch self {
            case .bytes(let bytes): if !bytes.isEmpty { try body(bytes) }
            case .file(let kept, _):
                guard kept.file.map.sizes.data > 0 else { return }
                var stream = kept.file.stream(.data).makeAsyncIterator()
                while true {
                    let piece: [UInt8]?
                    do throws(ContentError) { piece = try await stream.next(isolation: nil) } catch {
                        throw Failure("the content cannot be read", tree: TreeError(error))
                    }
                    guard let piece else { return }
                    if Task.isCancelled { throw .interrupted }
                    try body(piece)
                }
            case .stream(let blob):
                var stream = blob.makeAsyncIterator()
                while true {
                    let piece: [UInt8]?
                    do throws(ContentError) { piece = try await stream.next(isolation: nil) } catch {
                        if error == .cancelled { throw .interrupted }
                        throw Failure("the content cannot be read", tree: TreeError(error))
                    }
                    guard let piece else { return }
                    try body(piece)
                }
            }
        }
    }

    /// The content of a node, downloaded if it is not here. A download that was interrupted goes on behind its last
    /// verified chunk.
    ///
    /// - Parameters:
    ///   - components: the sections that must be on this machine afterwards, the data among them.
    ///   - streams: a content that is large and not here is read from the server piece by piece, and not kept.
    ///   - progress: receives the bytes that were transferred.
    /// - Throws: `notFound` for a node without content; `offline` for a content that is not on this machine.
    func source(
        of node: Node, at path: TreePath, components: ContentComponents = .data, streams: Bool = false,
        progress: @escaping @Sendable (UInt64) -> Void = { _ in }
    ) async throws(Failure) -> Source {
        let tree = open.tree
        let what = "cannot get \(TreeText.named(path))"
        // The author of a message has signed for all sections together, so nothing of it is shown before it is here.
        let isMessage = node.origin != nil
        let (components, streams) = (isMessage ? .all : components, streams && !isMessage)
        if let content = try await growing(what, { () throws(TreeError) in try await tree.content(of: node.id) }) {
            return .bytes(content.data)
        }
        if let kept = try await growing(what, { () throws(TreeError) in try await tree.waitingFile(of: node.id) }) {
            return .file(kept)
        }
        let waiting = try await growing(what) { () throws(TreeError) in try await tree.operations(of: node.id) }
        guard !waiting.contains(where: \.writesContent) || node.content == nil else {
            throw Failure(
                "the content of \(TreeText.named(path)) waits to be sent, and its file is not on this machine", .offline
            )
        }
        let reference = try await growing(what) { () throws(TreeError) in try await tree.reference(of: node.id) }
        guard let reference else {
            throw Failure("\(TreeText.named(path)) has no content: it is a container", .notFound)
        }
        let disk = try await growing(what) { () throws(TreeError) in try await tree.disk }
        let found: DiskFinding
        do throws(ContentError) { found = try await disk.find(reference, components) } catch {
            throw Failure(what, tree: TreeError(error))
        }
        switch found {
        case .file(let kept):
            if isMessage { try await verify(kept, node, what) }
            return .file(kept)
        case .absent: return .bytes([])
        case .none where isOffline: throw missing(path)
        case .none where streams && reference.sealedLength > Self.streamedBytesMin:
            let manager = try await growing(what) { () throws(TreeError) in try await tree.downloadManager }
            return .stream(manager.stream(reference))
        case .none:
            let source = try await download(reference, components, node, what, progress)
            if isMessage, case .file(let kept, _) = source { try await verify(kept, node, what) }
            return source
        }
    }

    private func verify(_ kept: RetainedFile, _ node: Node, _ what: String) async throws(Failure) {
        let messages = open.tree.messages
        try await growing(what) { () throws(TreeError) in
            try await messages.verify(kept.file, isContentOf: node.id)
        }
    }

    private func missing(_ path: TreePath) -> Failure {
        Failure(
            "the content of \(TreeText.named(path)) is not on this machine: leave out --offline, or bring it with "
                + "'thicket tree pull --content'", .offline)
    }

    private func download(
        _ reference: BlobReference, _ components: ContentComponents, _ node: Node, _ what: String,
        _ progress: @escaping @Sendable (UInt64) -> Void
    ) async throws(Failure) -> Source {
        let tree = open.tree
        // A file of the cache could be evicted before the next run goes on with it.
        let kept = DiskOptions(
            isPersistent: true, expires: SystemClock.unixMilliseconds() + Self.keptMilliseconds)
        let ticket = try await growing(what) { () throws(TreeError) in
            try await tree.downloadNodeData(node.id, components: components, options: DownloadOptions(disk: kept))
        }
        guard let ticket else { throw Failure("\(what): it has no content", .notFound) }
        let follower = Task { for await value in ticket.progress { progress(value.bytes) } }
        defer { follower.cancel() }
        let value: RetainedFile?
        do throws(ContentError) { value = try await ticket.value() } catch {
            if Task.isCancelled { throw Failure.interrupted }
            // What was downloaded would keep the disk full for other commands. Without success it expires.
            if error == .diskFull { try? await tree.disk.removePartial(reference.id) }
            throw Failure(what, tree: TreeError(error))
        }
        guard let value else { return .bytes([]) }
        return .file(value, isPassing: true)
    }

    /// The content was copied: its sealed file may be evicted.
    func release(_ source: Source, of node: Node) async {
        guard case .file(let kept, let isPassing) = source, let content = node.content,
            let disk = try? await open.tree.disk
        else { return }
        // Without success it expires. A content that was here before stays as the user wanted it.
        if isPassing { try? await disk.setPersistent(false, content.id) }
        try? await disk.release(kept.token)
    }

    /// The content stays on this machine, without an expiry.
    func retain(_ node: Node, at path: TreePath) async throws(Failure) {
        guard let content = node.content else { return }
        let (tree, what) = (open.tree, "cannot keep \(TreeText.named(path))")
        let disk = try await growing(what) { () throws(TreeError) in try await tree.disk }
        do throws(ContentError) { try await disk.setPersistent(true, content.id) } catch {
            throw Failure(what, tree: TreeError(error))
        }
    }

    // MARK: - Files

    /// Writes the content of a node into a folder, under the node's name as far as a file can have it.
    ///
    /// - Returns: the path of the file, and whether it was written; false: it was there with this content.
    package static func get(
        _ node: Node, into folder: String, in open: OpenTree, isOffline: Bool, isForced: Bool
    ) async throws(Failure) -> (path: String, isWritten: Bool) {
        let what = "nothing was written"
        guard let path = try await growing(what, { () throws(TreeError) in try await open.tree.path(of: node.id) }),
            let name = LocalName.of(node.name)
        else { throw Failure("\(what): no file can have the name of this node") }
        guard Files.isFolder(folder) else { throw Failure("there is no folder \(folder)", .notFound) }
        let target = folder.hasSuffix("/") ? folder + name.text : "\(folder)/\(name.text)"
        let download = NodeDownload(open: open, isOffline: isOffline, isForced: isForced)
        let bar = TransferBar("receiving", bytes: node.content?.storedBytes ?? 0, files: 1)
        defer { bar.clear() }
        let outcome = try await download.get(node, at: path, to: target) { bar.update(0, bytes: $0) }
        return (target, outcome == .written)
    }

    /// Writes the content of a node to a file, which appears whole or not at all.
    ///
    /// - Throws: `failure` for an existing file that differs, unless files are replaced.
    func get(
        _ node: Node, at path: TreePath, to target: String, progress: @escaping @Sendable (UInt64) -> Void = { _ in }
    ) async throws(Failure) -> Outcome {
        let existing = try existing(target)
        if let existing, try await isSame(node, existing) { return .same }
        if existing != nil, !isForced {
            throw Failure("\(target): a different file of this name exists; --force replaces it")
        }
        let source = try await source(of: node, at: path, progress: progress)
        let name = (node.content?.id.octets ?? node.id.octets).prefix(8).map { String($0, radix: 16) }.joined()
        let file = try ClearFile(target, content: "\(name)-\(Self.short(target))")
        do throws(Failure) { try await source.read { bytes throws(Failure) in try file.write(bytes) } } catch {
            // After a failed write the draft is gone already; removing it twice does nothing.
            file.discard()
            throw error
        }
        try file.finish(modified: node.modified, replaces: isForced && existing != nil)
        await release(source, of: node)
        return .written
    }

    /// Two names with one content in one folder have two drafts.
    private static func short(_ target: String) -> String {
        Hash.sha256(Array(target.utf8)).prefix(4).map { String($0, radix: 16) }.joined()
    }

    /// The regular file at a path; nil when the path is free.
    private func existing(_ target: String) throws(Failure) -> LocalFile? {
        var status = stat()
        guard lstat(target, &status) == 0 else { return nil }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return LocalFile(path: target)
        case S_IFDIR: throw Failure("\(target): a folder of this name exists")
        default: throw Failure("\(target): it is a link, a pipe, a socket or a device; only files are replaced")
        }
    }

    /// Whether a file has the content of a node: by size and digest, or, when the node has no digest of its content and
    /// the content is in the record, by its bytes.
    private func isSame(_ node: Node, _ file: LocalFile) async throws(Failure) -> Bool {
        guard !node.isPending, let content = node.content else { return false }
        // A file that cannot be read differs.
        guard let facts = try? file.facts(), facts.size == content.sizes.data else { return false }
        if let known = FileTag.valid(of: node) { return (try? file.tag())?.hasSameContent(as: known) == true }
        let tree = open.tree
        let inline = try await growing("cannot compare \(file.path)") { () throws(TreeError) in
            try await tree.content(of: node.id)
        }
        guard let inline, let tag = try? file.tag() else { return false }
        return FileTag.digest(of: inline.data) == tag.digest
    }
}
