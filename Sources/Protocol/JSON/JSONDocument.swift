/// A JSON text that is checked from end to end in one pass, with an index to it (the tape). Values are decoded on
/// demand; a value that is not read stays the received bytes.
///
/// Stricter than RFC 8259 where parsers differ: no repeated keys in an object, no lone surrogate escapes, no byte order
/// mark, bounded nesting, valid UTF-8 only. Numbers of any size are accepted and never rounded.
public struct JSONDocument: Sendable {
    let storage: JSONStorage

    /// Levels of nesting that no caller can exceed, because decoding values from the tape is recursive.
    public static let depthCeiling = 1_024

    /// Checks `bytes` and keeps them without copying.
    ///
    /// - Parameters:
    ///   - maxDepth: levels of nesting, at most `depthCeiling`.
    ///   - bytes: UTF-8, at most `Limits.jsonBytesMax` bytes.
    public init(parsing bytes: [UInt8], maxDepth: Int = Limits.jsonDepthMax) throws(JSONError) {
        try self.init(parsing: bytes[...], maxDepth: maxDepth)
    }

    /// Checks `bytes` and keeps the array behind the slice alive. Offsets in errors count from the slice's start.
    ///
    /// - Parameters:
    ///   - elementsMax: elements of the outermost array at most; the text is not read beyond them.
    ///   - bytes: UTF-8, at most `Limits.jsonBytesMax` bytes.
    ///   - maxDepth: levels of nesting, at most `depthCeiling`.
    public init(
        parsing bytes: ArraySlice<UInt8>, maxDepth: Int = Limits.jsonDepthMax, elementsMax: Int = .max
    ) throws(JSONError) {
        guard bytes.count <= Limits.jsonBytesMax else { throw JSONError(.tooLarge, at: Limits.jsonBytesMax) }
        storage = try JSONStorage(bytes, maxDepth: min(maxDepth, Self.depthCeiling), elementsMax: elementsMax)
    }

    /// Copies and checks `bytes`.
    public init(parsing bytes: UnsafeRawBufferPointer, maxDepth: Int = Limits.jsonDepthMax) throws(JSONError) {
        try self.init(parsing: [UInt8](bytes)[...], maxDepth: maxDepth)
    }

    /// The outermost value.
    public var root: JSONNode { JSONNode(storage: storage, index: 0) }
}

/// Bytes and tape, shared by a document and its nodes.
///
/// `@unchecked Sendable`: nothing changes after `init`.
final class JSONStorage: @unchecked Sendable {
    let bytes: ArraySlice<UInt8>
    let tape: UnsafePointer<UInt64>
    /// The storage that owns the tape; nil if this one does.
    private let lender: JSONStorage?

    /// The same document with a separate reference count.
    init(sharing other: JSONStorage) { (bytes, tape, lender) = (other.bytes, other.tape, other) }

    init(_ bytes: ArraySlice<UInt8>, maxDepth: Int, elementsMax: Int) throws(JSONError) {
        let result = bytes.withUnsafeBufferPointer { source in
            Self.scan(source, maxDepth: maxDepth, elementsMax: elementsMax)
        }
        self.bytes = bytes
        lender = nil
        tape = try result.get()
    }

    deinit { if lender == nil { tape.deallocate() } }

    /// Words of tape to start with: on the stack, and enough for most messages.
    private static let smallCapacity = 112

    /// Scans into scratch memory, and keeps a copy of the size needed.
    private static func scan(
        _ source: UnsafeBufferPointer<UInt8>, maxDepth: Int, elementsMax: Int
    ) -> Result<UnsafePointer<UInt64>, JSONError> {
        withUnsafeTemporaryAllocation(of: UInt64.self, capacity: smallCapacity) { scratch in
            guard let base = source.baseAddress, let tape = scratch.baseAddress else {
                return .failure(JSONError(.unexpectedEnd, at: 0))
            }
            var scanner = JSONScanner(
                base: base, count: source.count, tape: tape, capacity: scratch.count, maxDepth: maxDepth,
                elementsMax: elementsMax)
            defer { scanner.release() }
            do throws(JSONError) { try scanner.run() } catch { return .failure(error) }
            let kept = UnsafeMutablePointer<UInt64>.allocate(capacity: scanner.tapeCount)
            kept.initialize(from: scanner.tape, count: scanner.tapeCount)
            return .success(UnsafePointer(kept))
        }
    }
}
