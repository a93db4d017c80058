import ThicketProtocol

/// Converts between the bytes of a file and an object.
enum FileContent {
    /// The member of an object that a text file contains.
    static let textField = "text"

    /// Why a file cannot become an object.
    struct Problem: Error, Equatable {
        let text: String
    }

    /// The object that results from a file and the present object.
    ///
    /// - Parameter existing: a text file changes only `text` in it; the other members stay.
    static func object(
        _ bytes: [UInt8], kind: FileKind, existing: JSONObject?
    ) throws(Problem) -> JSONObject {
        switch kind {
        case .json:
            let value: JSONValue
            do { value = try JSONValue(parsing: bytes) } catch {
                throw Problem(text: "it is not JSON: \(error.explanation(in: bytes))")
            }
            guard let object = value.objectValue else {
                throw Problem(text: "it is JSON but not an object")
            }
            return object
        case .text:
            guard !bytes.contains(0), let text = String(validating: ByteOrderMark.removed(from: bytes), as: UTF8.self)
            else {
                throw Problem(text: "it is not text in UTF-8")
            }
            var object = existing ?? JSONObject()
            object[textField] = .string(text)
            return object
        }
    }

    /// The file's bytes for an object; nil when the object does not fit that kind.
    static func bytes(_ object: JSONObject, kind: FileKind) -> [UInt8]? {
        switch kind {
        case .json: return Pretty.bytes(.object(object))
        case .text:
            guard case .string(let text)? = object[textField], !text.utf8.contains(0) else { return nil }
            return Array(text.utf8)
        }
    }

    /// An object that holds only a text becomes a text file, every other object a JSON file.
    static func kind(of object: JSONObject) -> FileKind {
        object.count == 1 && bytes(object, kind: .text) != nil ? .text : .json
    }
}
