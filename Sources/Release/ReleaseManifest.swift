public import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The content of a release: its version, the commit from which it was built, and SHA-256 and size of each program.
///
/// The bytes, as they were first written, are the data of a leaf of the log (RFC 6962, 2.1): they are never serialized
/// again.
public struct ReleaseManifest: Sendable, Equatable {
    /// One program.
    public struct File: Sendable, Equatable {
        /// 1–64 characters of `[A-Za-z0-9._-]`.
        public let name: String
        /// SHA-256 of the program.
        public let digest: Digest256
        /// Size in bytes.
        public let size: Int64

        /// - Parameters:
        ///   - name: 1–64 characters of `[A-Za-z0-9._-]`.
        ///   - size: bytes.
        public init(name: String, digest: Digest256, size: Int64) {
            (self.name, self.digest, self.size) = (name, digest, size)
        }
    }

    /// Most programs of a release.
    public static let filesMax = 64
    /// Most bytes of a manifest.
    public static let bytesMax = 64 << 10
    private static let format: Int64 = 1

    /// The version as `thicket version` prints it.
    public let release: String
    /// The 40 hex digits of the git commit.
    public let commit: String
    /// The programs, at most `filesMax`.
    public let files: [File]
    /// The JSON text, which is hashed.
    public let text: String

    /// - Throws: `malformed` when a value is not permitted in a manifest.
    public init(release: String, commit: String, files: [File]) throws(ReleaseError) {
        let object: JSONObject = [
            "format": .number(JSONNumber(Self.format)), "release": .string(release), "commit": .string(commit),
            "files": .array(
                files.map { file in
                    [
                        "name": .string(file.name), "sha256": .string(file.digest.description),
                        "bytes": .number(JSONNumber(file.size)),
                    ]
                }),
        ]
        try self.init(text: JSONValue.object(object).serializedText)
    }

    /// Reads a manifest.
    /// - Throws: `malformed`.
    public init(text: String) throws(ReleaseError) {
        guard text.utf8.count <= Self.bytesMax, let value = try? JSONValue(parsing: text),
            value["format"]?.intValue == Self.format, let release = value["release"]?.stringValue,
            let commit = value["commit"]?.stringValue, let files = value["files"]?.arrayValue
        else { throw Self.malformed("it is not JSON of the form that this version knows") }
        guard Self.isName(release), commit.utf8.count == 40, Hex.decode(commit) != nil else {
            throw Self.malformed("its version or its commit is none")
        }
        guard (1...Self.filesMax).contains(files.count) else {
            throw Self.malformed("it lists no program, or too many")
        }
        var read = [File]()
        for file in files {
            guard let name = file["name"]?.stringValue, Self.isName(name),
                let digest = file["sha256"]?.stringValue.flatMap(Digest256.init(hex:)),
                let size = file["bytes"]?.intValue, size >= 0
            else { throw Self.malformed("a program in it lacks its name, SHA-256 or size") }
            guard !read.contains(where: { $0.name.utf8.elementsEqual(name.utf8) }) else {
                throw Self.malformed("it names a program twice")
            }
            read.append(File(name: name, digest: digest, size: size))
        }
        (self.release, self.commit, self.files, self.text) = (release, commit, read, text)
    }

    /// The hash of the leaf.
    public var leafHash: Digest256 { MerkleTree.leafHash(Array(text.utf8)) }

    /// The program with these bytes.
    /// - Throws: `otherProgram`.
    public func file(digest: Digest256, size: Int64) throws(ReleaseError) -> File {
        if let file = files.first(where: { $0.digest == digest && $0.size == size }) { return file }
        throw ReleaseError(
            .otherProgram,
            "its SHA-256 is \(digest), which is none of release \(release). It was changed, damaged, or belongs to another "
                + "release: do not run it")
    }

    private static func malformed(_ what: String) -> ReleaseError { ReleaseError(.malformed, "the manifest: \(what)") }

    static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || byte == 0x2D || byte == 0x2E || byte == 0x5F
            }
    }
}

extension Digest256 {
    /// - Returns: nil unless the text is 64 hex digits.
    init?(hex: String) {
        guard let bytes = Hex.decode(hex) else { return nil }
        self.init(bytes)
    }
}
