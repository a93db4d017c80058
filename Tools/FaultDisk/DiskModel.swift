/// A model of the content of a disk, and of which part of it is durable.
///
/// Synced writes are durable. After a crash each unsynced write is present, missing or torn, independently of the
/// writes before and after it; bytes outside a write are not damaged (SQLite's "powersafe overwrite"). Created or
/// deleted names are durable once the folder was synced, which SQLite does at the first sync of a log or journal that
/// it created, and with `synchronous=EXTRA` after deleting a journal. The names of files outside of SQLite are durable
/// once their own folder was synced; a renamed one has either name until then.
///
/// A torn write never equals the whole write by chance: if the missing part already matches the file's content, one
/// byte of it is replaced by garbage. Random content of a file (salts, nonces) therefore does not affect the result of
/// a crash, and a seed reproduces the same run.
public struct DiskModel: Sendable {
    /// The effect of a crash on unsynced writes.
    public enum Loss: Sendable, Hashable, CaseIterable {
        /// None: the process was killed, the system continues.
        case nothing
        /// All are lost.
        case everything
        /// Each one is kept, lost or cut at the end of a 512-byte sector.
        case sectors
        /// Each one is kept, lost or cut at any byte.
        case bytes
    }

    private struct File: Sendable {
        var synced = [UInt8]()
        var unsynced = [DiskHistory.Step.Action]()
        var isNamed: Bool
        var isDeleted = false
        /// The durable name of a renamed file until the new one is durable.
        var former: String?
    }

    private var files = [String: File]()

    /// - Parameter files: existing, synced files.
    public init(_ files: [String: [UInt8]] = [:]) {
        for (name, bytes) in files { self.files[name] = File(synced: bytes, isNamed: true) }
    }

    mutating func forget(_ file: String) { files[file] = nil }

    /// Applies one step.
    mutating func apply(_ step: DiskHistory.Step) {
        switch step.action {
        case .open:
            if files[step.file].map(\.isDeleted) ?? true { files[step.file] = File(isNamed: false) }
        case .write, .truncate:
            files[step.file, default: File(isNamed: false)].unsynced.append(step.action)
        case .sync:
            guard var file = files.removeValue(forKey: step.file) else { return }
            for action in file.unsynced { Self.apply(action, to: &file.synced) }
            file.unsynced.removeAll()
            let syncsFolder = !file.isNamed && (step.file.hasSuffix("-wal") || step.file.hasSuffix("-journal"))
            file.isNamed = true
            files[step.file] = file
            if syncsFolder { syncNames() }
        case .delete:
            files[step.file]?.isDeleted = true
        case .syncNames: syncNames()
        case .syncContent:
            guard var file = files.removeValue(forKey: step.file) else { return }
            for action in file.unsynced { Self.apply(action, to: &file.synced) }
            file.unsynced.removeAll()
            files[step.file] = file
        case .move(let target):
            guard var file = files.removeValue(forKey: step.file) else { return }
            file.former = file.isNamed ? file.former ?? step.file : nil
            files[target] = file
        case .syncFolder: syncFolder(step.file)
        }
    }

    private mutating func syncFolder(_ folder: String) {
        for name in files.keys where Self.folder(of: name).elementsEqual(folder.utf8) {
            if files[name]?.isDeleted == true { files[name] = nil }
            files[name]?.isNamed = true
            files[name]?.former = nil
        }
    }

    private static func folder(of name: String) -> Substring.UTF8View {
        name.utf8.lastIndex(of: UInt8(ascii: "/")).map { name.utf8[..<$0] } ?? name.utf8[..<name.utf8.startIndex]
    }

    /// Applies a sync of the folder: created names are durable, deleted files are removed.
    private mutating func syncNames() {
        files = files.filter { !$0.value.isDeleted }
        for name in files.keys { files[name]?.isNamed = true }
    }

    /// The files after a crash.
    public func crashed<Random: RandomNumberGenerator>(_ loss: Loss, _ random: inout Random) -> [String: [UInt8]] {
        var left = [String: [UInt8]]()
        for (name, file) in files.sorted(by: { $0.key < $1.key }) {
            if file.isDeleted, loss == .nothing || Bool.random(using: &random) { continue }
            let isSure = file.isNamed || loss == .nothing
            if !isSure, loss == .everything || Bool.random(using: &random) { continue }
            var bytes = file.synced
            for action in file.unsynced {
                for part in Self.parts(of: action, over: bytes, loss, &random) {
                    Self.apply(part, to: &bytes)
                }
            }
            // A rename is atomic: the file has the old name or the new one.
            if let former = file.former, loss != .nothing, loss == .everything || Bool.random(using: &random) {
                left[former] = bytes
            } else {
                left[name] = bytes
            }
        }
        return left
    }

    /// The parts of an unsynced step that reached the disk.
    private static func parts<Random: RandomNumberGenerator>(
        of action: DiskHistory.Step.Action, over file: [UInt8], _ loss: Loss, _ random: inout Random
    ) -> [DiskHistory.Step.Action] {
        if loss == .nothing { return [action] }
        guard loss != .everything else { return [] }
        let fate = Int.random(in: 0..<4, using: &random)
        guard fate < 2, case .write(let offset, let bytes) = action else { return fate == 3 ? [action] : [] }
        var end = Int.random(in: 0...bytes.count, using: &random)
        if loss == .sectors { end = min(max((offset + end) / 512 * 512 - offset, 0), bytes.count) }
        // A torn write may also have reached the disk from its end.
        return fate == 0
            ? torn(keeping: (offset, bytes[..<end]), without: (offset + end, bytes[end...]), over: file)
            : torn(keeping: (offset + end, bytes[end...]), without: (offset, bytes[..<end]), over: file)
    }

    private typealias Piece = (offset: Int, bytes: ArraySlice<UInt8>)

    private static func torn(
        keeping kept: Piece, without left: Piece, over file: [UInt8]
    ) -> [DiskHistory.Step.Action] {
        guard !kept.bytes.isEmpty else { return [] }
        let write = DiskHistory.Step.Action.write(offset: kept.offset, bytes: Array(kept.bytes))
        guard let last = left.bytes.last, holds(left, file) else { return [write] }
        return [write, .write(offset: left.offset + left.bytes.count - 1, bytes: [~last])]
    }

    /// Bytes beyond the end of a file count as zeros, because they read as zeros after a later write behind them.
    private static func holds(_ piece: Piece, _ file: [UInt8]) -> Bool {
        let there = file[min(piece.offset, file.count)...].prefix(piece.bytes.count)
        return piece.bytes.starts(with: there) && piece.bytes.dropFirst(there.count).allSatisfy { $0 == 0 }
    }

    private static func apply(_ action: DiskHistory.Step.Action, to bytes: inout [UInt8]) {
        switch action {
        case .write(let offset, let new):
            guard !new.isEmpty else { return }
            if bytes.count < offset + new.count {
                bytes.append(contentsOf: repeatElement(0, count: offset + new.count - bytes.count))
            }
            bytes.replaceSubrange(offset..<offset + new.count, with: new)
        case .truncate(let size):
            if bytes.count > size { bytes.removeLast(bytes.count - size) }
        case .open, .sync, .delete, .syncNames, .syncContent, .move, .syncFolder: return
        }
    }
}
