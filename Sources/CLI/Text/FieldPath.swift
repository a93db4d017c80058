import ThicketProtocol

/// The path to a value in an object: `title`, `author.name`, `lines.0`. A `\.` is a dot in a key.
struct FieldPath: Equatable, Sendable {
    let parts: [String]

    /// nil when a part is empty.
    init?(_ text: String) {
        var parts = [""]
        var isEscaped = false
        for scalar in text.unicodeScalars {
            if isEscaped {
                if scalar != ".", scalar != "\\" { parts[parts.count - 1] += "\\" }
                parts[parts.count - 1].unicodeScalars.append(scalar)
                isEscaped = false
            } else if scalar == "\\" {
                isEscaped = true
            } else if scalar == "." {
                parts.append("")
            } else {
                parts[parts.count - 1].unicodeScalars.append(scalar)
            }
        }
        if isEscaped { parts[parts.count - 1] += "\\" }
        guard !parts.contains(where: \.isEmpty) else { return nil }
        self.parts = parts
    }

    /// The value at the path; nil when it does not exist. Elements of lists are numbered from 0.
    func value(in object: JSONObject) -> JSONValue? {
        var value = JSONValue.object(object)
        for part in parts {
            let next: JSONValue?
            if case .array = value { next = Int(part).flatMap { value[$0] } } else { next = value[part] }
            guard let next else { return nil }
            value = next
        }
        return value
    }

    /// The object with another value at the path; nil when the path leads through a list or a plain value.
    func replaced(in object: JSONObject, by value: JSONValue) -> JSONObject? {
        FieldPath.replaced(object, parts[...], value)
    }

    private static func replaced(
        _ object: JSONObject, _ parts: ArraySlice<String>, _ value: JSONValue
    ) -> JSONObject? {
        guard let first = parts.first else { return nil }
        var result = object
        if parts.count == 1 {
            result[first] = value
            return result
        }
        guard let inner = object[first].map(\.objectValue) ?? JSONObject(),
            let changed = replaced(inner, parts.dropFirst(), value)
        else { return nil }
        result[first] = .object(changed)
        return result
    }
}
