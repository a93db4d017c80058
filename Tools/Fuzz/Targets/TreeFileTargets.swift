import ThicketCrypto
import ThicketTree
import ThicketTreesystem

/// A sealed file on disk: bytes 0 to 2 choose the sizes of the sections, the rest is the file.
///
/// Nothing of a file is handed out that was not sealed with its key; a sealed file with one changed bit gives an error.
public func fuzzTreeFile(_ bytes: [UInt8]) {
    guard bytes.count >= 6, let key = TreeScene.contentKey,
        let sizes = try? SectionSizes(
            metadata: UInt64(bytes[0]), thumbnail: UInt64(bytes[1]), data: UInt64(bytes[2]) << 2),
        let map = try? SectionMap(sizes, plainLength: sizes.length + UInt64(bytes[3]))
    else { return }
    let foreign = Array(bytes[6...])
    for section in [ContentSection.metadata, .thumbnail, .data] where sizes[section] > 0 {
        precondition((try? file(foreign, key, map).read(section)) == nil, "nobody seals without the key")
    }
    let sections = [Int(bytes[0]), Int(bytes[1]), Int(bytes[2]) << 2].map { [UInt8](repeating: bytes[4], count: $0) }
    let header = ContentHeader(
        sizes: sizes, padding: UInt64(bytes[3]), thumbnailDigest: ContentHeader.digest(sections[1]))
    let plain = header.octets + sections.flatMap { $0 } + [UInt8](repeating: 0, count: Int(bytes[3]))
    guard var sealed = try? ContentSealer.seal(plain, key) else { preconditionFailure("a content is sealed") }
    let genuine = file(sealed, key, map)
    precondition((try? genuine.verify()) != nil, "a sealed content opens")
    precondition((try? genuine.read(.data)) == sections[2], "its data is read")
    let bit = (Int(bytes[4]) << 8 | Int(bytes[5])) % (sealed.count * 8)
    sealed[bit / 8] ^= 1 << UInt8(bit % 8)
    precondition((try? file(sealed, key, map).verify()) == nil, "a flipped bit is noticed")
}

private func file(_ bytes: [UInt8], _ key: ContentKey, _ map: SectionMap) -> SealedFile {
    SealedFile(path: "fuzzed", key: key, map: map, files: OneFile(bytes: bytes))
}

/// A file system with one file in memory.
private struct OneFile: ContentFiles {
    let bytes: [UInt8]

    func open(_ path: String, writable: Bool) throws(ContentError) -> (any ContentFile)? { OpenBytes(bytes) }
    func create(_ path: String) throws(ContentError) -> any ContentFile { throw .diskFull }
    func rename(_ path: String, to target: String) throws(ContentError) {}
    func remove(_ path: String) throws(ContentError) {}
    func makeFolder(_ path: String) throws(ContentError) {}
    func names(in folder: String) throws(ContentError) -> [String] { [] }
}

private final class OpenBytes: ContentFile {
    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func identity() throws(ContentError) -> FileIdentity {
        var identity = FileIdentity()
        identity.size = UInt64(bytes.count)
        return identity
    }

    func read(at offset: UInt64, into room: UnsafeMutableRawBufferPointer) throws(ContentError) -> Int {
        let part = bytes.dropFirst(Int(clamping: offset)).prefix(room.count)
        room.copyBytes(from: part)
        return part.count
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ContentError) { throw .diskFull }
    func truncate(to size: UInt64) throws(ContentError) { throw .diskFull }
    func sync() throws(ContentError) {}
}
